/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Spin model of the recovery part of the synchronous mode (docs/protocol.md).
 *
 * What is kept in a server's state directory is plain memory here; a crash takes
 * nothing else away. Stores of one event are made in the order of that page,
 * and a crash may come between any two of them (CRASHPOINT). The apply of a round
 * has two blocks: undo copy, live mark, torn block, new block, next block, then
 * the version, then the staged gradients are dropped. Nobody else can see a server
 * between two such stores, so they are one step of the model unless it crashes.
 * Server 0 and the coordinator are one process. A message once sent can arrive
 * late, again, out of order or not at all; answers can be lost. A trainer that
 * dies comes back with a new session under its explicit rank and gets its data
 * position; each has R batches to use, whatever the rounds are.
 *
 * -DHOLD: the open round waits for a rank that is lost in it, until its time is
 * over, and lets a new session of the rank in although others have sent their
 * barriers. Time is over when nothing else can happen.
 *
 * -DCOPIES=n: a push is copied by one of n receiving threads of the server, and
 * comes to the state machine later, when view, version and window may have
 * changed; the threads and what they have copied end with the process. Without
 * it a push is received and staged in one step.
 *
 * Checked
 *   A  a server that closes k has all of P(k) staged, once; each block gets each
 *      round once, in order, from whole values (never from a torn block)
 *   B  a round has one P, whoever crashed after the decision
 *   D  a member is never fenced; a pull meets the version it names
 *   E  no lost session in a later P
 *   F  at the end (timeout) END is everywhere, everybody is up and answered
 *   G  both servers leave with the version decided last and with equal blocks
 *   X  each batch of each rank is used at most once, exactly once if all is done
 *   W  -DHOLD: a round lacks a rank that is not done only if the time of that
 *      rank is over, and that is never so while a session of it asks to join;
 *      if it never happens, there are R rounds
 *   Q  after a loss of state nobody goes on: END with a code, or a rewind to the
 *      snapshot (-DSNAP), after which A .. X hold from its version on
 *
 * Run: make model (tests/model/run); docs/protocol.md lists states and planted bugs.
 *   spin -a -DSCRASH=1 [-DCRASHES=1] [-DWRONG=1] [-DWIPE=1 [-DSNAP]] [-DHOLD] [-DCOPIES=1]
 *     [-DBUG_..] recovery.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c && ./pan -m400000 -w22
 * "errors: 0" counts only without "Search not completed". -DREACH=1..10 must fail.
 */
#ifndef R
#define R 2		/* batches of each rank */
#endif
#ifndef CRASHES
#define CRASHES 0	/* deaths of trainers */
#endif
#ifndef WRONG
#define WRONG 0		/* leases that run out though the trainer lives */
#endif
#ifndef SCRASH
#define SCRASH 1	/* crashes of servers, which keep their state */
#endif
#ifndef WIPE
#define WIPE 0		/* crashes of servers that lose it */
#endif
#define KARR 6
#define NS 4		/* sessions 0,1 of rank 0; 2,3 of rank 1 */
#define NV 12
#define NB 2		/* blocks of a server */

#define B(x)       (1 << (x))
#define HAS(m, x)  (((m) >> (x)) & 1)
#define RANK(s)    ((s) >> 1)
#define BEFORE(s)  (s & 1 -> s - 1 : s)
#define OF(r)      (3 << (2 * (r)))

#define IDLE  0
#define JOIN  1
#define PULL  2
#define PUSH  3
#define BARR  4
#define COMPL 5
#define DONE  6
#define DEAD  7
#define FENCED 8
#define ENDED 9
#define ALIVE(s) (cs[s] >= JOIN && cs[s] <= COMPL)
byte cs[NS], ck[NS], got[NS];
byte sent[NS], bsent[NS], csent;	/* the network */

/* coordinator: all of it is in the state of server 0 */
byte granted, mem, lost, completed, taken, done;
byte gview[NS], gver[NS], gpos[NS], back[NS];
byte kc, bar, dec[KARR], pos[2];
byte vcur, vmem[NV], vopen[NV];
bit ended, code, cnew;			/* cnew: another state id than before */
byte crashes = CRASHES, wrong = WRONG, scrash = SCRASH, wipes = WIPE;
bit knew[NS];				/* session was granted by the new state */

/* servers: all of it is in their state */
bit up[2], sended[2], snew[2], sgen[2], live[2];
byte ver[2], sview[2], staged[2], stround[2], twice[2], win[8];
byte bv[4], torn[2], cursor[2], undo[2], clos[2], vlast;

/* ghosts: they remember what a machine may forget */
byte gdec[KARR];
byte used[2];				/* batches of a rank that are in */
bit gen, rewound;
byte undone;				/* sessions from before the rewind */

/* -DHOLD, coordinator: ranks that the open round waits for, and ranks whose time
 * in it is over. hopeless (a ghost): the time of some rank was over. */
byte awaited, spent;
bit hopeless;
#ifdef HOLD
#define WAITS      (awaited != 0)
#define MAYJOIN(s) HAS(awaited, RANK(s))
inline await(s) {
	if
	:: HAS(taken, RANK(s)) && !HAS(spent, RANK(s)) -> awaited = awaited | B(RANK(s))
	:: else
	fi
}
/* a round of both ranks, but for those that are done or out of time */
#define COMPLETE(r) ((bar & OF(r)) != 0 || HAS(done, r) || HAS(spent, r))
/* a session of a rank that the round waits for has asked to join */
#define ASKS(s)    (cs[s] == JOIN && !HAS(granted, s) && HAS(awaited, RANK(s)))
#else
#define WAITS      0
#define MAYJOIN(s) 0
#define await(s)   skip
#define COMPLETE(r) 1
#endif
#ifdef BUG_HOLDJOIN	/* nobody joins after the first barrier, awaited or not */
#undef MAYJOIN
#define MAYJOIN(s) 0
#endif
#ifdef BUG_HOLDSKIP	/* the decision looks at members only */
#undef WAITS
#define WAITS 0
#endif

/* -DCOPIES, servers: session + 1 of a push that a thread has copied, and its
 * round. They end with the process. */
#ifndef COPIES
#define COPIES 0
#endif
#define NT 2		/* threads of a server at most */
byte cp[4], cpk[4], nobytes[2];	/* nobytes (a ghost): staged without its bytes */
#define CP(j, t)   cp[(j) * NT + (t)]
#define CPK(j, t)  cpk[(j) * NT + (t)]
#ifdef SNAP
byte spos[2], odec[KARR];
bit hs[2];				/* has a snapshot of version 1 */
#endif

#define WIN(j, s)  win[(j) * NS + (s)]
#define BV(j, b)   bv[(j) * NB + (b)]
#define GATE       (taken == 3)
#define LATE       timeout	/* time limits end when nothing else can happen */
#define KNOWS(j, s) (sview[j] >= gview[s] && gview[s] > 0)
#define INVIEW(j, s) (KNOWS(j, s) && HAS(vmem[sview[j]], s))
#define BATCH(s)   (gpos[s] + ck[s] - gver[s])

inline newview() {
	vcur++; assert(vcur < NV); vmem[vcur] = mem; vopen[vcur] = kc;
	if :: sgen[0] == gen -> setview(0, vcur) :: else fi
}
/* a view that drops a session while the round is undecided drops what it staged */
inline setview(j, v) {
	if
	:: v > sview[j] ->
		sview[j] = v;
		if
#ifndef BUG_RANKCLOSE
		:: vopen[v] <= ver[j] && clos[j] == 0 -> staged[j] = staged[j] & vmem[v]
#endif
		:: else
		fi
	:: else
	fi
}

/* what was acknowledged is not sent again */
inline norepeat(s) { if :: HAS(bar, s) && cs[s] != BARR -> bsent[s] = bsent[s] & ~B(kc) :: else fi }

#ifdef BUG_HOLDFORGET	/* the wait is not kept over a restart */
#define renew(r) skip
#else
inline renew(r) {
	if
	:: HAS(taken, r) && !HAS(done, r) && (mem & OF(r)) == 0 -> awaited = awaited | B(r)
	:: else
	fi
}
#endif

/* --- crash of a server: everything else stays as it is --- */
inline crash(j) {
	scrash--; up[j] = 0; CP(j, 0) = 0; CP(j, 1) = 0; CPK(j, 0) = 0; CPK(j, 1) = 0;
#ifdef HOLD		/* a coordinator that comes back gives lost ranks their time anew */
	if
	:: j == 0 -> spent = 0; awaited = 0; renew(0); renew(1)
	:: else
	fi;
#endif
#ifdef BUG_STALEVIEW	/* the view was not kept */
	if :: sview[j] > 0 && j == 1 -> vlast = sview[j]; sview[j] = 0 :: else fi;
#endif
	if
	:: j == 0 ->
#ifdef BUG_FORGETGRANT	/* GRANT was sent before it was written down */
		if
		:: pg != NS && HAS(mem, pg) && bar == 0 && kc == gver[pg] ->
			granted = granted & ~B(pg); mem = mem & ~B(pg); gview[pg] = 0;
			taken = taken & ~B(RANK(pg))
		:: else
		fi;
#endif
#ifdef BUG_BARRIERACK	/* BARRIER was acknowledged before it was written down */
		norepeat(0); norepeat(1); norepeat(2); norepeat(3); bar = 0;
#endif
#ifdef BUG_DECIDEFORGET	/* CLOSE was sent before the decision was written down */
		if
		:: kc > 0 && !rewound && dec[kc - 1] != 0 && ver[0] < kc ->
			kc--; bar = dec[kc]; dec[kc] = 0
		:: else
		fi;
#endif
#ifdef BUG_DONEFORGET	/* COMPLETE was acknowledged before it was written down */
		if
		:: pd != NS -> completed = completed & ~B(pd); done = done & ~B(RANK(pd)); mem = mem | B(pd);
			if :: cs[pd] == DONE -> csent = csent & ~B(pd) :: else fi
		:: else
		fi;
#endif
		skip
	:: else
	fi
#ifdef BUG_ENDFORGET	/* END was sent before it was written down */
	;
	if :: j == 0 && ended && !sended[0] -> ended = 0; taken = 0 :: else fi
#endif
}
#ifdef BUG_FORGETGRANT
byte pg = NS;
#endif
#ifdef BUG_DONEFORGET
byte pd = NS;
#endif
#define CRASHPOINT(j) if :: scrash > 0 -> crash(j); goto again :: 1 fi

/* --- what a server does first when it starts again --- */
inline recover(j) {
	if
	:: live[j] ->
#ifndef BUG_NOUNDO
		BV(j, cursor[j]) = undo[j]; torn[j] = torn[j] & ~B(cursor[j]);
#endif
		if :: scrash > 0 -> scrash--; goto again :: 1 fi;	/* once more */
		live[j] = 0
	:: else
	fi;
#ifdef BUG_CURSORFORGET	/* begins the round anew */
	cursor[j] = 0;
#endif
	if
#ifndef BUG_STALESTAGE
	:: staged[j] != 0 && stround[j] < ver[j] -> staged[j] = 0; clos[j] = 0; cursor[j] = 0
#endif
	:: staged[j] != 0 && stround[j] == ver[j] ->
#ifndef BUG_NOREMARK
		remark(j, 0); remark(j, 1); remark(j, 2); remark(j, 3)
#else
		skip
#endif
	:: else -> if :: stround[j] < ver[j] -> clos[j] = 0; cursor[j] = 0 :: else fi
	fi;
	up[j] = 1
}
inline remark(j, s) { if :: HAS(staged[j], s) -> WIN(j, s) = WIN(j, s) | B(ver[j]) :: else fi }

/* ---------------------------------------------------------------- trainer */
proctype trainer(byte s)
{
end:	do
	:: atomic { cs[s] == IDLE && (!(s & 1) || cs[BEFORE(s)] == DEAD || cs[BEFORE(s)] == FENCED) && !ended ->
		cs[s] = JOIN }
	:: atomic { cs[s] == JOIN && up[0] && HAS(granted, s) && HAS(mem, s) ->
#ifndef BUG_QUIET
		/* the process remembers the coordinator's state */
		assert(!(s & 1) || cs[BEFORE(s)] != FENCED || !cnew || rewound || code);
#endif
		cs[s] = PULL; ck[s] = gver[s]; got[s] = 0 }
	:: atomic { cs[s] == PULL && got[s] == 3 ->
		got[s] = 0;
		if
		:: BATCH(s) >= R -> cs[s] = COMPL; csent = csent | B(s)
		:: else ->
			cs[s] = PUSH; sent[s] = sent[s] | B(ck[s]);
		fi }
	:: atomic { cs[s] == PUSH && got[s] == 3 ->
		cs[s] = BARR; got[s] = 0; bsent[s] = bsent[s] | B(ck[s]) }
	:: atomic { cs[s] == BARR && back[s] == ck[s] + 1 ->
		cs[s] = PULL; ck[s]++; got[s] = 0 }
	:: atomic { cs[s] == COMPL && up[0] && HAS(completed, s) -> cs[s] = DONE }
	:: atomic { crashes > 0 && ALIVE(s) -> crashes--; cs[s] = DEAD; got[s] = 0 }
	/* the coordinator says: no member (RENEW, BARRIER, JOIN, COMPLETE) */
	:: atomic { ALIVE(s) && cs[s] != COMPL && up[0] && HAS(lost, s) -> cs[s] = FENCED; got[s] = 0 }
	:: atomic { cs[s] == COMPL && up[0] && HAS(lost, s) && !HAS(completed, s) &&
		((mem & OF(RANK(s))) != 0 || HAS(done, RANK(s)) || HAS(undone, s)) -> cs[s] = FENCED }
	/* it says so from another state, which never heard of this session */
	:: atomic { ALIVE(s) && cs[s] != JOIN && up[0] && cnew && !knew[s] && !rewound && !ended ->
#ifdef BUG_QUIET
		cs[s] = FENCED; got[s] = 0
#else
		ended = 1; code = 1	/* JOIN with the old state id: the coordinator ends the job */
#endif
	}
	/* a server says so */
	:: atomic { (cs[s] == PULL || cs[s] == PUSH) && !(cnew && !knew[s]) &&
		(   (up[0] && KNOWS(0, s) && !INVIEW(0, s) && !HAS(got[s], 0))
		 || (up[1] && KNOWS(1, s) && !INVIEW(1, s) && !HAS(got[s], 1))
		 || (up[0] && INVIEW(0, s) && ver[0] > ck[s] && !HAS(got[s], 0) && !HAS(WIN(0, s), ck[s]))
		 || (up[1] && INVIEW(1, s) && ver[1] > ck[s] && !HAS(got[s], 1) && !HAS(WIN(1, s), ck[s]))) ->
		assert(!HAS(mem, s));		/* D: never fence a member */
		cs[s] = FENCED; got[s] = 0 }
	:: atomic { ended && up[0] && ALIVE(s) -> cs[s] = ENDED; got[s] = 0 }
	od
}

/* ------------------------------------- coordinator, events of one session */
proctype coord(byte s)
{
end:	do
	:: atomic { cs[s] == JOIN && up[0] && !HAS(granted, s) && !ended &&
		(!GATE || bar == 0 || MAYJOIN(s)) && (mem & OF(RANK(s))) == 0 && !HAS(done, RANK(s)) ->
		awaited = awaited & ~B(RANK(s));
#ifdef BUG_FORGETGRANT
		pg = s;
#endif
		granted = granted | B(s); mem = mem | B(s); taken = taken | B(RANK(s));
		gver[s] = kc; gpos[s] = pos[RANK(s)]; knew[s] = cnew;
		newview(); gview[s] = vcur }
	:: atomic { up[0] && HAS(mem, s) && !ended && (cs[s] == DEAD || cs[s] == FENCED || cs[s] == DONE || wrong > 0) ->
		if
		:: cs[s] == DEAD || cs[s] == FENCED || cs[s] == DONE
		:: else -> wrong--
		fi;
		mem = mem & ~B(s); lost = lost | B(s);
#ifndef BUG_HOLDBAR	/* the barrier of a lost session counts for its rank */
		bar = bar & ~B(s);
#endif
		await(s);
		newview() }
	:: atomic { up[0] && HAS(bsent[s], kc) && HAS(mem, s) && !HAS(bar, s) && !ended ->
		bar = bar | B(s); back[s] = kc + 1;
#ifdef BUG_POSEARLY	/* the position is taken from the barrier, not the decision */
		pos[RANK(s)] = gpos[s] + kc - gver[s] + 1
#endif
	}
	:: atomic { up[0] && HAS(csent, s) && HAS(mem, s) && !ended ->
		assert(!HAS(bar, s));
#ifdef BUG_DONEFORGET
		pd = s;
#endif
		mem = mem & ~B(s); completed = completed | B(s); done = done | B(RANK(s));
		newview() }
	:: atomic { up[0] && HAS(csent, s) && HAS(lost, s) && !HAS(completed, s) && !HAS(undone, s) &&
		(mem & OF(RANK(s))) == 0 && !HAS(done, RANK(s)) && !ended ->
		completed = completed | B(s); done = done | B(RANK(s)); awaited = awaited & ~B(RANK(s)) }
	od
}

/* position and ghost of one participant */
inline commit(s) {
	if
	:: HAS(bar, s) ->
		assert(!HAS(used[RANK(s)], gpos[s] + kc - gver[s]));	/* X: a batch once */
		used[RANK(s)] = used[RANK(s)] | B(gpos[s] + kc - gver[s]);
#ifndef BUG_POSLOST
		pos[RANK(s)] = gpos[s] + kc - gver[s] + 1
#else
		skip
#endif
	:: else
	fi
}
#ifdef SNAP	/* who lives has closed all that was decided */
#define CAUGHTUP (ver[0] == kc)
#else
#define CAUGHTUP 1
#endif
#ifdef SNAP	/* all servers have a snapshot of version 1, taken when round 0 was closed */
byte k0;
inline rewind() {
	if
	:: !hs[0] || !hs[1] -> ended = 1; code = 1	/* there is none that all have */
	:: else ->
		rewound = 1; gen = 1;
		undone = mem | lost | completed; lost = lost | mem; mem = 0; completed = 0; bar = 0; done = 0;
		k0 = 1;
		do
		:: k0 < KARR -> odec[k0] = dec[k0]; dec[k0] = 0; gdec[k0] = 0; k0++
		:: else -> break
		od;
		kc = 1; pos[0] = spos[0]; pos[1] = spos[1];
		used[0] = B(spos[0]) - 1; used[1] = B(spos[1]) - 1;
		newview()
	fi
}
#endif
proctype rounds()
{
end:	do
#ifdef BUG_HOLDBAR	/* and a rank that has a barrier needs no session */
	:: atomic { up[0] && GATE && mem != 0 && (bar & mem) == mem && !ended ->
#else
	:: atomic { up[0] && GATE && mem != 0 && bar == mem && !WAITS && !ended ->
#endif
		assert(COMPLETE(0) && COMPLETE(1));			/* W */
		assert(kc < KARR - 1 && dec[kc] == 0);
		assert((bar & lost) == 0);				/* E */
		assert(!(HAS(bar, 0) && HAS(bar, 1)) && !(HAS(bar, 2) && HAS(bar, 3)));
		dec[kc] = bar;
		if
		:: gdec[kc] == 0 -> gdec[kc] = bar; commit(0); commit(1); commit(2); commit(3)
		:: else -> assert(gdec[kc] == bar)			/* B: decided once */
		fi;
		kc++; bar = 0;
		/* a rank that is back has its time again */
		if :: (mem & OF(0)) != 0 -> spent = spent & ~B(0) :: else fi;
		if :: (mem & OF(1)) != 0 -> spent = spent & ~B(1) :: else fi }
#if defined(HOLD) && !defined(BUG_HOLDENDLESS)
	/* the time of the ranks that the round waits for is over */
	:: atomic { LATE && up[0] && awaited != 0 && mem != 0 && !ended ->
		assert(!ASKS(0) && !ASKS(1) && !ASKS(2) && !ASKS(3));	/* W */
		spent = spent | awaited; awaited = 0; hopeless = 1 }
#endif
	:: atomic { up[0] && GATE && mem == 0 && done == 3 && !ended -> ended = 1; code = 0 }
	/* nobody left, time to rejoin over */
	:: atomic { LATE && up[0] && GATE && mem == 0 && !ended -> ended = 1; code = (done == 3 -> 0 : 1) }
	:: atomic { LATE && up[0] && !GATE && !ended -> ended = 1; code = 1 }
	/* STATE of a server with another state id, or of one that knew another coordinator */
	:: atomic { up[0] && !ended && !rewound && !cnew && up[1] && snew[1] && CAUGHTUP ->
#ifdef SNAP
		rewind()
#else
#ifndef BUG_QUIETSERVER
		ended = 1; code = 1
#else
		snew[1] = 0; ver[1] = kc; BV(1, 0) = kc; BV(1, 1) = kc
#endif
#endif
	}
	:: atomic { up[0] && !ended && !rewound && cnew && up[1] && sview[1] > 0 && !snew[1] ->
#ifdef BUG_QUIET
		sview[1] = 0; ver[1] = 0; BV(1, 0) = 0; BV(1, 1) = 0; staged[1] = 0; clos[1] = 0; cursor[1] = 0; snew[1] = 1
#else
		ended = 1; code = 1
#endif
	}
	od
}

/* ----------------------------------------------------------------- server */
/* the coordinator says which state it expects; one with another serves nobody */
#define SERVES(j) (!snew[j] || cnew)
/* PUSH: staged, marked, acknowledged, in this order */
#ifdef BUG_COUNTFIRST
#define STAGE(j, s) WIN(j, s) = WIN(j, s) | B(ver[j])
#else
#ifdef BUG_WINFIRST
#define STAGE(j, s) WIN(j, s) = WIN(j, s) | B(ver[j]); CRASHPOINT(j); PUT(j, s)
#else
#ifdef BUG_ACKEARLY
#define STAGE(j, s) ACKED(j, s); CRASHPOINT(j); PUT(j, s); WIN(j, s) = WIN(j, s) | B(ver[j])
#else
#define STAGE(j, s) PUT(j, s); CRASHPOINT(j); WIN(j, s) = WIN(j, s) | B(ver[j])
#endif
#endif
#endif
#define PUT(j, s) \
	if :: HAS(staged[j], s) -> twice[j] = twice[j] | B(s) :: else fi; \
	staged[j] = staged[j] | B(s); stround[j] = ver[j]
#define ACKED(j, s) \
	if :: cs[s] == PUSH && ck[s] == ver[j] -> got[s] = got[s] | B(j) :: else fi
#define EXPECTS(j, s) (INVIEW(j, s) && !HAS(WIN(j, s), ver[j]) && clos[j] == 0 && sgen[j] == gen && SERVES(j))
#if COPIES
/* the thread that receives asks whether the push is expected, and copies it */
#ifdef BUG_COUNTFIRST	/* the entry is counted before the bytes are there */
#define BEGIN(j, s) PUT(j, s); nobytes[j] = nobytes[j] | B(s)
#define FILL(j, s)  nobytes[j] = nobytes[j] & ~B(s)
#else
#define BEGIN(j, s) skip
#define FILL(j, s)  skip
#endif
#define COPY(j, t, s) \
	:: atomic { up[j] && !sended[j] && CP(j, t) == 0 && HAS(sent[s], ver[j]) && EXPECTS(j, s) -> \
		BEGIN(j, s); CP(j, t) = s + 1; CPK(j, t) = ver[j] }
/* the machine looks again: view, version and window may be others now */
#ifdef BUG_STALECHECK	/* what was expected when it was copied is staged */
#define STILL(j, t, s) (!HAS(WIN(j, s), ver[j]))
#else
#ifdef BUG_COPYTWICE	/* a copy that another thread has made is staged as well */
#define STILL(j, t, s) (INVIEW(j, s) && CPK(j, t) == ver[j])
#else
#define STILL(j, t, s) (EXPECTS(j, s) && CPK(j, t) == ver[j])
#endif
#endif
#define HANDLE(j, t) \
	:: atomic { up[j] && !sended[j] && CP(j, t) != 0 && clos[j] == 0 -> \
		u = CP(j, t) - 1; FILL(j, u); \
		if \
		:: STILL(j, t, u) -> \
			assert(CPK(j, t) == ver[j] && INVIEW(j, u));	/* A: in its round, of a member */ \
			CP(j, t) = 0; CPK(j, t) = 0; \
			STAGE(j, u); CRASHPOINT(j); \
			if :: ACKED(j, u) :: 1 fi \
		:: else -> CP(j, t) = 0; CPK(j, t) = 0 \
		fi; \
		u = 0 }
#if COPIES > 1
#define THREADS(j) HANDLE(j, 0) HANDLE(j, 1)
#define TAKEN(j, s) COPY(j, 0, s) COPY(j, 1, s)
#else
#define THREADS(j) HANDLE(j, 0)
#define TAKEN(j, s) COPY(j, 0, s)
#endif
#else
#define THREADS(j)
#define TAKEN(j, s) \
	:: atomic { up[j] && !sended[j] && HAS(sent[s], ver[j]) && EXPECTS(j, s) -> \
		STAGE(j, s); CRASHPOINT(j); \
		if :: ACKED(j, s) :: 1 fi }	/* or the answer is lost */
#endif
#define RECV(j, s) TAKEN(j, s) \
	:: atomic { up[j] && cs[s] == PUSH && !HAS(got[s], j) && INVIEW(j, s) && HAS(WIN(j, s), ck[s]) -> \
		got[s] = got[s] | B(j) } \
	:: atomic { up[j] && !sended[j] && cs[s] == PULL && !HAS(got[s], j) && INVIEW(j, s) && ver[j] == ck[s] && clos[j] == 0 && sgen[j] == gen && SERVES(j) -> \
		assert(BV(j, 0) == ver[j] && BV(j, 1) == ver[j] && torn[j] == 0); \
		got[s] = got[s] | B(j) }
#ifdef SNAP
#define TAKE(j) if :: ver[j] == 1 -> hs[j] = 1 :: else fi
#else
#define TAKE(j) skip
#endif
#ifdef BUG_VERFIRST
#define EARLY(j) ver[j] = ver[j] + 1; CRASHPOINT(j)
#define AFTER(j) skip
#define KNOW(j)  (ver[j] - 1)
#else
#define EARLY(j) skip
#define AFTER(j) ver[j] = ver[j] + 1; TAKE(j); CRASHPOINT(j)
#define KNOW(j)  ver[j]
#endif
#define BLOCK(j) \
	undo[j] = BV(j, cursor[j]); \
	CRASHPOINT(j); \
	live[j] = 1; \
	CRASHPOINT(j); \
	assert(BV(j, cursor[j]) == KNOW(j) && !HAS(torn[j], cursor[j]));	/* A: whole, of this version, so once */ \
	torn[j] = torn[j] | B(cursor[j]); \
	CRASHPOINT(j); \
	torn[j] = torn[j] & ~B(cursor[j]); BV(j, cursor[j]) = BV(j, cursor[j]) + 1; \
	CRASHPOINT(j); \
	live[j] = 0; cursor[j] = cursor[j] + 1; \
	CRASHPOINT(j)

#ifdef BUG_VIEWGEN	/* a view of after the rewind is taken before the rewind */
#define VIEWGEN(j) 1
#else
#define VIEWGEN(j) (sgen[j] == gen)
#endif
proctype server(byte j)
{
	byte u;
again:
end:	do
	RECV(j, 0) RECV(j, 1) RECV(j, 2) RECV(j, 3) THREADS(j)
	:: atomic { up[j] && !sended[j] && sview[j] < vcur && up[0] && VIEWGEN(j) && !(cnew && !snew[j]) ->
		u = sview[j] + 1; setview(j, u); u = 0 }
#ifdef BUG_STALEVIEW	/* a VIEW that was long under way */
	:: atomic { up[j] && j == 1 && !sended[j] && vlast > 1 && sview[1] == 0 ->
		u = vlast - 1; setview(1, u); u = 0; vlast = 0 }
#endif
#ifdef SNAP
	:: atomic { up[j] && !sended[j] && sgen[j] < gen && up[0] ->	/* REWIND(gen, 1) */
		sgen[j] = gen; snew[j] = 0; ver[j] = 1; BV(j, 0) = 1; BV(j, 1) = 1; torn[j] = 0; live[j] = 0;
		staged[j] = 0; stround[j] = 1; clos[j] = 0; cursor[j] = 0; twice[j] = 0;
		WIN(j, 0) = 0; WIN(j, 1) = 0; WIN(j, 2) = 0; WIN(j, 3) = 0 }
#ifdef BUG_STALECLOSE	/* a decision of before the rewind, long under way */
	:: atomic { up[j] && !sended[j] && gen && sgen[j] == gen && clos[j] == 0 && ver[j] < KARR && odec[ver[j]] != 0 ->
#else
	:: atomic { up[j] && !sended[j] && gen && sgen[j] < gen && !snew[j] && clos[j] == 0 && ver[j] < KARR && odec[ver[j]] != 0 ->
#endif
		u = odec[ver[j]]; goto close }
#endif
	/* CLOSE(ver, P), or a round that was interrupted and comes again */
	:: atomic { up[j] && !sended[j] && up[0] && ver[j] < kc && dec[ver[j]] != 0 && sgen[j] == gen && !(cnew && !snew[j]) && SERVES(j) ->
		u = dec[ver[j]];
#ifdef SNAP
close:
#endif
#ifdef BUG_RANKCLOSE	/* what any session of a rank has staged is added up */
		assert((staged[j] & ((u & 3) != 0 -> 3 : 0)) == (u & 3) &&
			(staged[j] & ((u & 12) != 0 -> 12 : 0)) == (u & 12));
#endif
		assert((nobytes[j] & u) == 0);				/* A: with its bytes */
		assert((staged[j] & u) == u && stround[j] == ver[j]);	/* A: all of P is here */
		assert((twice[j] & u) == 0);				/* and once */
		assert(clos[j] == 0 || clos[j] == u);			/* B: the same P as before the crash */
#ifdef SNAP
		assert(sgen[j] < gen || gdec[ver[j]] == u);
#else
		assert(gdec[ver[j]] == u);				/* B */
#endif
		clos[j] = u;
		EARLY(j);
		if :: cursor[j] == 0 -> BLOCK(j) :: else fi;
		if :: cursor[j] == 1 -> BLOCK(j) :: else fi;
		CRASHPOINT(j);
		AFTER(j);
		staged[j] = 0; twice[j] = 0; clos[j] = 0; cursor[j] = 0; u = 0 }
	:: atomic { up[j] && ended && up[0] && !sended[j] && (ver[j] == kc || code) -> sended[j] = 1 }
	/* its state was lost when all were complete: it cannot reach END's version */
	:: atomic { up[j] && ended && up[0] && !sended[j] && snew[j] -> sended[j] = 1; code = 1 }
	/* crashes when it does nothing; starts again */
	:: atomic { up[j] && scrash > 0 -> crash(j) }
	:: atomic { !up[j] -> recover(j) }
	/* loses its state */
	:: atomic { up[j] && wipes > 0 && !sended[j] && !ended && kc > 0 ->
		wipes--; snew[j] = 1; ver[j] = 0; BV(j, 0) = 0; BV(j, 1) = 0; torn[j] = 0; live[j] = 0;
		staged[j] = 0; stround[j] = 0; clos[j] = 0; cursor[j] = 0; twice[j] = 0; sview[j] = 0;
		WIN(j, 0) = 0; WIN(j, 1) = 0; WIN(j, 2) = 0; WIN(j, 3) = 0;
		if
		:: j == 0 -> cnew = 1;
			granted = 0; mem = 0; lost = 0; completed = 0; taken = 0; done = 0;
			kc = 0; bar = 0; vcur = 0; pos[0] = 0; pos[1] = 0;
			dec[0] = 0; dec[1] = 0; dec[2] = 0; dec[3] = 0; dec[4] = 0
		:: else
		fi }
	od
}

#define GONE(s) (cs[s] == DEAD || cs[s] == FENCED)
#define OVER(s) (cs[s] == IDLE || cs[s] >= DONE)
#define ALL ((1 << R) - 1)
proctype monitor()
{
	atomic { timeout && ended ->
		assert(sended[0] && sended[1] && up[0] && up[1]);		/* F */
		assert(OVER(0) && OVER(1) && OVER(2) && OVER(3));
		assert(code || (ver[0] == kc && ver[1] == kc && BV(0, 0) == kc && BV(0, 1) == kc && BV(1, 0) == kc && BV(1, 1) == kc));	/* G */
		assert(code || (used[0] == ALL && used[1] == ALL));		/* X */
#ifdef HOLD
		assert(code || hopeless || rewound || kc == R);			/* W */
#endif
		assert(wipes == WIPE || code || rewound);			/* Q */
		assert(wipes < WIPE || GONE(1) || GONE(3) || (done == 3 && !code)); }
}
#ifdef REACH	/* is the interesting case there at all? must fail */
#if REACH == 1
#define CASE (!up[1] && live[1] && torn[1] && kc == 2)		/* torn in the second round */
#elif REACH == 2
#define CASE (!up[1] && ver[1] == 1 && staged[1] && stround[1] == 0)	/* version made, staged not dropped */
#elif REACH == 3
#define CASE (!up[0] && bar != 0 && mem != bar)			/* coordinator dies in an open round */
#elif REACH == 4
#define CASE (!up[1] && staged[1] && !HAS(WIN(1, 0), ver[1]) && HAS(staged[1], 0))
#elif REACH == 5
#define CASE (!up[0] && !up[1])
#elif REACH == 6
#define CASE (ended && !code && crashes < CRASHES && scrash < SCRASH && done == 3)
#elif REACH == 7
#define CASE (ended && !code && rewound && done == 3)
#elif REACH == 8
#define CASE (ended && !up[0])
#elif REACH == 9	/* -DHOLD -DCRASHES=1: a session joins a round that has a barrier */
#define CASE (bar != 0 && mem != bar && cs[1] == PULL && HAS(mem, 1) && gver[1] == kc)
#elif REACH == 10	/* -DCOPIES=1 -DCRASHES=1: a copy of a session that has been dropped */
#define CASE (up[1] && CP(1, 0) == 1 && KNOWS(1, 0) && !INVIEW(1, 0))
#endif
proctype reach() { end: CASE -> assert(0) }
#endif
init {
	atomic {
		up[0] = 1; up[1] = 1;
#ifdef SNAP
		spos[0] = 1; spos[1] = 1;
#endif
		run trainer(0); run trainer(1); run trainer(2); run trainer(3);
		run coord(0); run coord(1); run coord(2); run coord(3);
		run rounds(); run server(0); run server(1); run monitor();
#ifdef REACH
		run reach();
#endif
	}
}
