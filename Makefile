# Fluid. Newcomers need two targets, make demo and make test; make help has all.

VERSION := 0.1.0
SOVERSION := 0
PREFIX ?= /usr/local
B ?= build# where everything goes
T ?=# make test T=map: only tests whose name has "map"; several words: any
SETS ?= uci_housing# make data SETS=mnist: another data set
V ?=# V=1 shows the commands
ifeq ($(origin CC),default) # make CC=clang, or CC=clang in the environment
CC := gcc
endif
WERROR ?=# make check and CI set it to -Werror
OPT ?= -O3

MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif
.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:
Q := $(if $(V),,@)
say = @$(if $(V),:,printf '  %-5s %s\n' $(1) $(patsubst $(B)/%,%,$(2)))

# Floats give the same bits everywhere: no contraction, no reordering. Nobody
# reads errno or the exception flags, which would keep loops from vectors.
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wno-unused-parameter -Wno-missing-field-initializers $(WERROR) \
	$(if $(findstring clang,$(CC)),-Wno-pass-failed)
CFLAGS := -std=c11 -D_GNU_SOURCE $(OPT) -g -fPIC -ffp-contract=off \
	-fno-math-errno -fno-trapping-math $(WARN) -Iinclude -Isrc -I$(B)/gen $(SAN)
LDFLAGS := $(SAN)
# The extension is of the stable ABI: any Python from 3.11 on loads it. Where
# the headers are not there it is left out, and paddle version says so.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
PY_INC := $(wildcard $(shell $(PYTHON) -c \
	'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null))
PY_INC := $(if $(wildcard $(PY_INC)/Python.h),$(PY_INC))
# The plug-in that reduces by MPI is built where MPI is (scripts/deps mpi).
MPICC := $(shell command -v mpicc)
MPI_PLUGIN := $(if $(MPICC),$(B)/lib/libfluid-mpi.so)
# The plug-in with a faster cipher for TLS is built where ipsec-mb is.
AES_PLUGIN := $(if $(shell echo '\#include <intel-ipsec-mb.h>' | \
	$(CC) -E -x c - >/dev/null 2>&1 && echo yes),$(B)/lib/libfluid-aes.so)
PLUGINS := $(MPI_PLUGIN) $(AES_PLUGIN)
LDLIBS := -ldnnl -lgomp -lgrpc -lgpr -lprotobuf-c -lssl -lcrypto -lz -lm -lpthread
# Above it in the tree and where it is installed, beside it in a wheel.
ORIGIN := -Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/../fluid'

# Tests, fuzzers and their support stand beside the code, not in the library.
ALL_SRC := $(wildcard src/*/*.c)
TEST_SRC := $(filter %_test.c,$(ALL_SRC)) $(wildcard tests/*_test.c)
FUZZ_SRC := $(filter %_fuzz.c,$(ALL_SRC))
SUPPORT_SRC := src/base/test_main.c \
	$(filter-out %_test.c %_fuzz.c,$(wildcard src/check/*.c)) \
	$(filter-out %_test.c,$(wildcard src/protocol/sim*.c))
# Ranks in virtual time: socket calls of these tests go to src/net/sim_net.c.
RANKS_SIM := src/net/sim_net.c src/collective/sim.c
RANKS_WRAP := poll socket connect getsockopt accept4 send recv sendmsg recvmsg \
	close fl_clock_real fl_entropy_real fl_cores
CLI_SRC := $(wildcard src/cli/*.c)
LIB_SRC := $(filter-out $(TEST_SRC) $(FUZZ_SRC) $(SUPPORT_SRC) $(RANKS_SIM) \
	$(CLI_SRC),$(ALL_SRC))
# measure what is not in fluid.h
INSIDE_SRC := bench/allreduce.c bench/apply.c bench/journal.c bench/table.c bench/wire.c
# These see fluid.h and nothing else.
USER_SRC := $(filter-out $(INSIDE_SRC) bench/allreduce_mpi.c,$(wildcard examples/*.c bench/*.c))
GEN := $(patsubst proto/%.proto,$(B)/gen/%.pb-c,$(wildcard proto/*.proto))

obj = $(1:%.c=$(B)/obj/%.o)
LIB_OBJ := $(call obj,$(LIB_SRC)) $(GEN:=.o)
SO := $(B)/lib/libfluid.so
LIB := $(B)/lib/libfluid.a
CLI := $(if $(CLI_SRC),$(B)/bin/paddle)
TESTS := $(patsubst src/%,%,$(TEST_SRC:.c=))
SCENES := $(wildcard tests/*_test.sh tests/python/test_*.py)
PY_SRC := $(wildcard python/*.c)
PY_EXT := $(if $(PY_INC),$(B)/python/paddle/fluid/_fluid.abi3.so)
EXAMPLES := $(patsubst %.c,$(B)/%,$(filter examples/%,$(USER_SRC)))
BENCHES := $(patsubst %.c,$(B)/%,$(filter bench/%,$(USER_SRC)))
INSIDE := $(patsubst %.c,$(B)/%,$(INSIDE_SRC))

.PHONY: all help demo test unit suite check asan tsan shape fmt docs env bench
.PHONY: python install wheel fuzz fuzz-run clean deps data FORCE
.PHONY: model test-sim step-coverage kill-matrix bench-ranks k8s image random-kills

all: $(LIB) $(SO) $(CLI) $(EXAMPLES) $(PLUGINS) python

help:
	@echo 'make              build the library, the command and the package in $(B)/'
	@echo 'make demo         train a click model with 2 servers and 2 trainers'
	@echo 'make test [T=x]   run all tests, or those whose name contains x'
	@echo 'make unit [T=x]   run the C tests only'
	@echo 'make test-sim     simulate the protocol under 10,000 schedules of faults'
	@echo 'make model        check the model of recovery with Spin, T=x: some searches'
	@echo 'make k8s          run jobs as pods of a cluster: KUBECTL=, see tests/python/k8s_scene.py'
	@echo 'make image        try the commands of the Dockerfiles in a fresh Debian'
	@echo 'make kill-matrix  kill processes of jobs at named stores, WORKERS=, T=x: some'
	@echo 'make random-kills kill and stop processes at random for MINUTES=10'
	@echo 'make check        check format, layers, rules and docs; run the sanitizers'
	@echo 'make fuzz         fuzz every reader of foreign bytes for FUZZ_SECONDS=60'
	@echo 'make bench        measure speed beside PyTorch'
	@echo 'make bench-ranks  measure ranks beside OpenMPI, gloo and DDP'
	@echo 'make step-coverage   count the files and functions of a distributed step'
	@echo 'make shape        print figures of the code beside the aims'
	@echo 'make fmt          run clang-format on every file'
	@echo 'make docs         write generated pages, check names in the documents'
	@echo 'make data         fetch data sets for examples, SETS="uci_housing mnist"'
	@echo 'make env          print shell lines for eval "$$(make -s env)"'
	@echo 'make install      install under PREFIX=/usr/local, with DESTDIR= before it'
	@echo 'make wheel        make a file that pip installs, in $(B)/dist'
	@echo 'make clean        remove $(B)/ and build-*/'

# --- library and command ---------------------------------------------------

$(B)/obj/%.o: %.c $(B)/flags | $(GEN:=.h)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/obj/src/api/engine.o: private CFLAGS += -DFL_VERSION=\"$(VERSION)\"

$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: proto/%.proto
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(B)/gen --proto_path=proto $<

$(B)/gen/%.o: $(B)/gen/%.c $(B)/flags
	$(Q)$(CC) $(CFLAGS) -c $< -o $@

# Written anew only where the text differs: other flags or files, new objects.
keep = @mkdir -p $(@D); echo '$(1)' | cmp -s - $@ || echo '$(1)' >$@
$(B)/flags: FORCE
	$(call keep,$(VERSION) $(CC) $(CFLAGS))
$(B)/objects: FORCE
	$(call keep,$(LIB_OBJ))

$(LIB): $(LIB_OBJ) $(B)/objects
	$(call say,AR,$@)
	@mkdir -p $(@D) && rm -f $@
	$(Q)ar rcs $@ $(LIB_OBJ)

$(B)/gen/fluid.map: include/fluid.h scripts/exports
	@mkdir -p $(@D)
	@scripts/exports $< >$@

$(SO): $(LIB_OBJ) $(B)/objects $(B)/gen/fluid.map
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(LDFLAGS) $(LIB_OBJ) $(LDLIBS) -o $@.$(VERSION) \
		-Wl,-soname,libfluid.so.$(SOVERSION) $(if $(SAN),,-Wl,-z,defs) \
		-Wl,--version-script=$(B)/gen/fluid.map
	@ln -sf libfluid.so.$(VERSION) $@.$(SOVERSION)
	@ln -sf libfluid.so.$(SOVERSION) $@

$(B)/bin/paddle: $(call obj,$(CLI_SRC)) $(SO)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $^ $(ORIGIN) -o $@

$(B)/lib/libfluid-mpi.so: plugins/mpi.c src/collective/plugin.h
	$(call say,MPI,$@)
	@mkdir -p $(@D)
	$(Q)$(MPICC) -std=c11 -O2 -g -Wall -Wextra $(WERROR) -Isrc \
		-fPIC -shared $< -o $@

$(B)/lib/libfluid-aes.so: plugins/aes.c
	$(call say,AES,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -O2 -g -Wall -Wextra $(WERROR) $(SAN) \
		-fPIC -shared $< -lIPSec_MB -lcrypto -o $@

$(call obj,src/cli/version.c): private CFLAGS += \
	$(if $(PY_EXT),-DFL_WITH_PYTHON)

$(call obj,$(PY_SRC)): private CFLAGS += -isystem $(PY_INC)

# libfluid is beside it in a wheel, near it in the tree, above it where it is
# installed.
$(PY_EXT): $(call obj,$(PY_SRC)) $(SO)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(LDFLAGS) $^ -o $@ \
		-Wl,-rpath,'$$ORIGIN:$$ORIGIN/../../../lib:$$ORIGIN/../../../..'

# The schema of programs, for framework_pb2.
PY_SCHEMA := $(B)/python/paddle/fluid/proto/framework.desc
$(PY_SCHEMA): proto/framework.proto
	@mkdir -p $(@D)
	$(Q)protoc-c --descriptor_set_out=$@ --proto_path=proto $<

# The package is links to the source's files, with the extension among them.
# Links that are there stay: somebody may be importing them.
python: $(PY_EXT) $(PY_SCHEMA)
	@mkdir -p $(B)/python
	@find $(B)/python -xtype l -delete
	@cp -rsn $(CURDIR)/python/paddle $(B)/python

$(EXAMPLES) $(BENCHES): $(B)/%: %.c include/fluid.h $(SO)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra $(WERROR) -Iinclude \
		$(SAN) $< $(SO) $(ORIGIN) -lm -lpthread -o $@

$(INSIDE): $(B)/%: $(B)/obj/%.o $(LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) $(ORIGIN) -o $@

# --- tests -------------------------------------------------------------------

$(B)/test/tests/%: $(B)/obj/tests/%.o $(call obj,$(SUPPORT_SRC)) $(LIB)
	$(link-test)
$(B)/test/%: $(B)/obj/src/%.o $(call obj,$(SUPPORT_SRC)) $(LIB)
	$(link-test)
$(addprefix $(B)/test/net/,aes_test grpc_tls_test tls_test): | $(AES_PLUGIN)
# The machines with bugs, which their simulators must find, and not the library's.
planted = $(patsubst %,$(B)/planted/%.o,$(1))
PLANTED := $(call planted,$(addprefix protocol/,client coord history job members \
	pushers server))
RANKS_PLANTED := $(call planted,net/ranks collective/reducer)
$(B)/planted/%.o: src/%.c $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -DFL_WITH_PLANTS -MMD -MP -c $< -o $@
$(B)/test/protocol/sim_plant_test: $(call obj,src/protocol/sim_plant_test.c) \
		$(PLANTED) $(call obj,$(SUPPORT_SRC)) $(LIB)
	$(link-test)
$(B)/test/collective/sim%: private LDFLAGS += $(RANKS_WRAP:%=-Wl,--wrap=%)
$(B)/test/collective/sim_test: $(call obj,src/collective/sim_test.c \
		$(RANKS_SIM) src/base/test_main.c) $(LIB)
	$(link-test)
$(B)/test/collective/sim_plant_test: $(RANKS_PLANTED) \
		$(call obj,src/collective/sim_plant_test.c $(RANKS_SIM) \
		src/base/test_main.c) $(LIB)
	$(link-test)
# There are hundreds of test programs: a faster linker is used if there is one.
TEST_LD := $(firstword $(foreach l,lld gold,\
	$(if $(shell command -v ld.$(l)),-fuse-ld=$(l))))
# RPATH finds plug-ins also where the address sanitizer calls dlopen for us.
define link-test
@mkdir -p $(@D)
$(Q)$(CC) $(LDFLAGS) $(TEST_LD) $^ -lcmocka $(LDLIBS) \
	-Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../../lib' -o $@
endef

# The meta-test judges what the others checked: it has a part in full runs only.
some = $(if $(T),$(foreach t,$(1),$(if $(strip $(foreach w,$(T),\
	$(findstring $(w),$(t)))),$(filter-out %meta_test,$(t)))),$(1))
UNITS := $(addprefix $(B)/test/,$(call some,$(TESTS)))

unit: $(UNITS)
	@scripts/run-tests $(B) $(UNITS)

test: deps
	@$(MAKE) suite

suite: all data $(UNITS)
	@scripts/run-tests $(B) $(UNITS) $(call some,$(SCENES))

test-sim: $(addprefix $(B)/test/,$(foreach d,protocol collective,\
	$(d)/sim_test $(d)/sim_plant_test) net/mesh_storm_test)
	@for t in $^; do FL_SIM_SEEDS=10000 $$t || exit; done

model:
	@scripts/deps model
	@tests/model/run $(B)/model $(T)

WORKERS ?=# make kill-matrix WORKERS=8: so many scenes at a time
kill-matrix: all
	@$(PYTHON) tests/python/matrix.py $(B) "$(WORKERS)" $(T)

MINUTES ?= 10
random-kills: all
	$(Q)eval "$$(scripts/env $(B))"; \
		$$PADDLE_PYTHON tests/python/kills.py $(MINUTES) $(SEED)

# IMAGE_BASE= keeps a fresh Debian, see there.
image: wheel
	@eval "$$(scripts/env $(B))" && "$$PADDLE_PYTHON" tests/python/image_scene.py

k8s: all
	@eval "$$(scripts/env $(B))" && "$$PADDLE_PYTHON" tests/python/k8s_scene.py

# -g1: a report needs lines of the source, and the rest takes long to link.
SAFE := B=build-asan OPT=-O1 \
	SAN="-fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-DFL_NO_CLONES -g1"
RACE := B=build-tsan OPT=-O1 \
	SAN="-fsanitize=thread -DFL_NO_CLONES -DFL_TSAN -g1"
asan:
	@$(MAKE) unit $(SAFE)
tsan: # what runs on several threads
	@$(MAKE) unit $(RACE) T="base/ exec/ collective/ table/ state/ cluster/ protocol/ wire/ pserver/ trainer/ data/ train/ places"

check: export WERROR := -Werror
check:
	@scripts/deps build test check
	@scripts/format --check
	@scripts/layers
	@$(MAKE) $(LIB) && scripts/rules . $(B)
	@$(MAKE) docs
	@scripts/shape
	@$(MAKE) asan
	@$(MAKE) tsan

FUZZ_SECONDS ?= 60
fuzz:
	@scripts/deps build check
	@$(MAKE) fuzz-run B=build-fuzz CC=clang OPT=-O1 WARN= FUZZ_SECONDS=$(FUZZ_SECONDS) \
		SAN="-fsanitize=fuzzer-no-link,address,undefined \
		-fno-sanitize-recover=undefined -DFL_NO_CLONES"
fuzz-run: $(patsubst src/%.c,$(B)/fuzz/%,$(FUZZ_SRC))
	@scripts/fuzz $(B) $(FUZZ_SECONDS) $^
$(B)/fuzz/%: $(B)/obj/src/%.o $(call obj,src/check/hostile.c) $(LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAN) -fsanitize=fuzzer $^ $(LDLIBS) -o $@

# --- around it -----------------------------------------------------------------

deps:
	@scripts/deps build test
data:
	@scripts/data $(B)/data $(SETS)

demo:
	@scripts/deps build demo
	@$(MAKE) all
	@scripts/demo $(B)

bench:
	@scripts/deps build bench
	@$(MAKE) all $(BENCHES) $(INSIDE)
	@bench/run $(B)
bench-ranks:
	@scripts/deps build bench mpi
	@$(MAKE) all $(INSIDE)
	@bench/collective.py $(B); missed=$$?; bench/run $(B) 11 && exit $$missed

COVER := B=build-cov CC=gcc OPT=-O0 \
	SAN="--coverage -fprofile-update=atomic -DFL_NO_CLONES"
step-coverage:
	@scripts/deps build demo
	@$(MAKE) all $(COVER)
	@eval "$$(scripts/env build-cov)" && \
		"$$PADDLE_PYTHON" bench/step_coverage.py build-cov

shape:
	@scripts/shape
fmt:
	@scripts/format
docs: all
	@scripts/docs
	@scripts/pages $(B)
env:
	@scripts/env $(B)

# The share has the data sets that were fetched, uci_housing at least.
SHARE = $(DESTDIR)$(PREFIX)/share/fluid/data
SITE = $(DESTDIR)$(shell $(PYTHON) scripts/site $(PREFIX))
install: all data
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,include lib/pkgconfig bin)
	install -m 644 include/fluid.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(LIB) $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(SO).$(VERSION) $(DESTDIR)$(PREFIX)/lib
	cp -P $(SO).$(SOVERSION) $(SO) $(DESTDIR)$(PREFIX)/lib
	$(if $(strip $(PLUGINS)),install -m 755 $(PLUGINS) $(DESTDIR)$(PREFIX)/lib)
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(LDLIBS)|' \
		scripts/fluid.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/fluid.pc
	$(if $(CLI),install -m 755 $(CLI) $(DESTDIR)$(PREFIX)/bin)
	$(if $(CLI),install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 \
		bash-completion/completions zsh/site-functions))
	$(if $(CLI),$(CLI) help --man >$(DESTDIR)$(PREFIX)/share/man/man1/paddle.1)
	$(if $(CLI),for c in $$($(CLI) help --man | sed -n 's/^.SS paddle \([a-z0-9]*\).*/\1/p'); do \
		$(CLI) help --man $$c >$(DESTDIR)$(PREFIX)/share/man/man1/paddle-$$c.1 || exit; done)
	$(if $(CLI),$(CLI) help --bash \
		>$(DESTDIR)$(PREFIX)/share/bash-completion/completions/paddle)
	$(if $(CLI),$(CLI) help --zsh \
		>$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_paddle)
	for set in $$(ls $(B)/data); do \
		install -d $(SHARE)/$$set && \
		install -m 644 $(B)/data/$$set/* $(SHARE)/$$set || exit; done
	$(if $(PY_EXT),scripts/install-python $(B)/python/paddle $(SITE))
	@scripts/installed "$(DESTDIR)" $(PREFIX) $(shell $(PYTHON) scripts/site $(PREFIX)) \
		$(PYTHON)

wheel: all data
	@scripts/wheel $(B) $(VERSION)

clean:
	rm -rf $(B) build-asan build-tsan build-fuzz build-cov

-include $(patsubst %.o,%.d,$(call obj,$(ALL_SRC) $(wildcard tests/*.c) \
	$(PY_SRC) $(INSIDE_SRC)) $(PLANTED) $(RANKS_PLANTED))
