/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - one row for every message. The enum, the names, the gRPC methods and
 * the checks of fields are all derived from these rows.
 *
 *     FL_MESSAGE(kind, number, from, to, by, method, answer, carries)
 *
 *     number   the value of Control.Kind on the wire. Numbers are never reused;
 *              rows are sorted by them, so a new row is the last.
 *     from, to TRAINER, SERVER, COORD, or ANY (a server or the coordinator)
 *     by       CALL: a request on a call of its own; OPEN: on the open call of
 *              the session; ANSWER: only an answer to a request
 *     method   the gRPC method that carries the request
 *     answer   the kind that answers the request when all is well. PARKED,
 *              FENCED, ERROR and END may answer any request.
 *     carries  fields of fl_msg that the kind uses. Every message also has job,
 *              session and tag; one from ANY also has state and
 *              generation.
 *
 * docs/protocol.md says what the messages mean. */

/* --- requests of trainers --- */

/* A trainer process asks for a rank. rank: the claimed one, or -1; text:
 * host:pid; round: the highest version that this process has pulled. */
FL_MESSAGE(JOIN, 1, TRAINER, COORD, CALL, "/fluid.Coordinator/Join", GRANT,
           "rank explicit_id text seen round")
/* A trainer renews its lease. echo: number of the last PROBE; round: as in
 * JOIN. */
FL_MESSAGE(RENEW, 2, TRAINER, COORD, OPEN, "/fluid.Coordinator/Session", ACK,
           "g echo seen round")
/* Servers have acknowledged all pushes of this trainer for the round. In an
 * asynchronous job it only tells the position of the step. */
FL_MESSAGE(BARRIER, 3, TRAINER, COORD, CALL, "/fluid.Coordinator/Barrier", ACK,
           "g round step position")
/* The trainer has made its last pull and leaves. */
FL_MESSAGE(COMPLETE, 4, TRAINER, COORD, CALL, "/fluid.Coordinator/Complete",
           ACK, "g")
/* The trainer leaves because of an error. text: why; round: as in JOIN. */
FL_MESSAGE(FAILED, 5, TRAINER, COORD, CALL, "/fluid.Coordinator/Fail", ACK,
           "g code text seen round")
/* Gradients. count: how many pushes the round has; only in the last one. */
FL_MESSAGE(PUSH, 6, TRAINER, SERVER, CALL, "/fluid.Server/Push", ACK,
           "g seq round count step part blob")
/* A trainer asks for values. round: the version it wants; blob: names. */
FL_MESSAGE(PULL, 7, TRAINER, SERVER, CALL, "/fluid.Server/Pull", VALUES,
           "g round blob")

/* --- answers --- */

/* The session has been granted a rank. round: the open round; step and
 * position: of the last step of the rank that counts. */
FL_MESSAGE(GRANT, 8, COORD, TRAINER, ANSWER, NULL, NONE,
           "rank g round step position")
/* Asks for a RENEW with this echo at once. text: a warning, or none. */
FL_MESSAGE(PROBE, 9, COORD, TRAINER, OPEN, NULL, NONE, "echo text")
/* The values that were asked for. round: their version. */
FL_MESSAGE(VALUES, 10, ANY, TRAINER, ANSWER, NULL, NONE,
           "view round server count blob")
/* The request is done. */
FL_MESSAGE(ACK, 11, ANY, TRAINER, ANSWER, NULL, NONE, "view round server")
/* The request must wait; the trainer repeats it. text: what it waits for. */
FL_MESSAGE(PARKED, 12, ANY, TRAINER, ANSWER, NULL, NONE,
           "view round server text")
/* The session is over. rank: the rank that it had, or -1; text: why and when
 * it ended. */
FL_MESSAGE(FENCED, 13, ANY, TRAINER, ANSWER, NULL, NONE,
           "view round server rank text")
/* The request can never succeed. code: an fl_err; about: a description of this
 * job, if the request was for another job. */
FL_MESSAGE(ERROR, 14, ANY, TRAINER, ANSWER, NULL, NONE,
           "view round server code text about")

/* --- between the coordinator and the servers --- */

/* The job ends; also an answer to any request. round: the version to end with;
 * < 0: end at once. over: the coordinator knows that this server has ended. */
FL_MESSAGE(END, 15, COORD, SERVER, CALL, "/fluid.Server/Tell", ACK,
           "view round server over code text expected secret echo")
/* The present members. round: the open round. snapshot: in an asynchronous job,
 * the newest one that is to be taken. */
FL_MESSAGE(VIEW, 16, COORD, SERVER, CALL, "/fluid.Server/Tell", ACK,
           "view round expected member left snapshot secret echo")
/* The round is decided. member: P(round), the sessions whose gradients count,
 * sorted by rank. snapshot: the one to be taken of the version that the round
 * makes. */
FL_MESSAGE(CLOSE, 17, COORD, SERVER, CALL, "/fluid.Server/Tell", ACK,
           "round expected member snapshot secret echo")
/* A server reports its progress. round: its version; expected: the state id of
 * the coordinator that it knows; snapshot: the newest one that it has written;
 * damaged: the one that it was told to go back to and cannot restore, and text
 * says why. */
FL_MESSAGE(STATE, 18, SERVER, COORD, CALL, "/fluid.Coordinator/Report", ACK,
           "server view round over code text expected snapshot damaged secret "
           "echo")

/* --- more requests of trainers --- */

/* Counts to be summed over all trainers. The answer's count is the number of
 * trainers in the sum. */
FL_MESSAGE(TALLY, 19, TRAINER, COORD, CALL, "/fluid.Coordinator/Tally", VALUES,
           "blob")

/* --- a server that was started without a program --- */

/* Is this job here? (seq 0) Or a part of what the server needs for it. rank: of
 * the sender; server: the receiver's index; seq: number of the part; count:
 * parts; text: host:pid; about: fl_job_about. ACK.round: 1 if the job is here,
 * else 0. */
FL_MESSAGE(SETUP, 20, TRAINER, SERVER, CALL, "/fluid.Server/Setup", ACK,
           "rank server seq count text about blob")

/* --- going back --- */

/* The servers have lost a state: this one goes back to the snapshot. It answers
 * by STATE with the generation. */
FL_MESSAGE(REWIND, 21, COORD, SERVER, CALL, "/fluid.Server/Tell", ACK,
           "snapshot secret echo")
