# Fluid. make demo, make test: the two that a newcomer needs. make help: all.

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all

VERSION := 0.1.0
SOVERSION := 0
PREFIX ?= /usr/local
B ?= build
CC := gcc
OPT ?= -O3

CFLAGS := -std=c11 -D_GNU_SOURCE $(OPT) -g -fPIC -ffp-contract=off \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wno-unused-parameter -Wno-missing-field-initializers -Werror \
	-fno-math-errno -Iinclude -Isrc -I$(B)/gen $(SAN)
LDLIBS := -ldnnl -lprotobuf-c -lm -lpthread
LDFLAGS := $(SAN)

# Tests, fuzzers and their support stand beside the code but not in the library.
ALL_SRC := $(wildcard src/*/*.c)
TEST_SRC := $(filter %_test.c,$(ALL_SRC)) $(wildcard tests/*_test.c)
FUZZ_SRC := $(filter %_fuzz.c,$(ALL_SRC))
SUPPORT_SRC := src/base/test_main.c $(wildcard src/ops/check.c)
CLI_SRC := $(wildcard src/cli/*.c)
LIB_SRC := $(filter-out $(TEST_SRC) $(FUZZ_SRC) $(SUPPORT_SRC) $(CLI_SRC),$(ALL_SRC))
PROTO := $(wildcard proto/*.proto)
GEN_OBJ := $(PROTO:proto/%.proto=$(B)/gen/%.pb-c.o)

obj = $(1:%.c=$(B)/obj/%.o)
LIB_OBJ := $(call obj,$(LIB_SRC)) $(GEN_OBJ)
LIB := $(B)/libfluid.a
TESTS := $(patsubst %.c,$(B)/test/%,$(notdir $(TEST_SRC)))

.PHONY: all
all: $(LIB)

$(B)/obj/%.o: %.c $(PROTO:proto/%.proto=$(B)/gen/%.pb-c.h)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: proto/%.proto
	@mkdir -p $(B)/gen
	protoc-c --c_out=$(B)/gen --proto_path=proto $<

$(B)/gen/%.pb-c.o: $(B)/gen/%.pb-c.c
	$(CC) $(CFLAGS) -c $< -o $@

$(LIB): $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

# One binary a test file. make test T=map runs those whose name has "map".
vpath %_test.c $(sort $(dir $(TEST_SRC)))
$(B)/test/%: $(B)/obj/test/%.o $(call obj,$(SUPPORT_SRC)) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $< $(call obj,$(SUPPORT_SRC)) $(LIB) -lcmocka $(LDLIBS) -o $@

$(B)/obj/test/%.o: %.c $(PROTO:proto/%.proto=$(B)/gen/%.pb-c.h)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c $< -o $@

T ?=
RUN := $(if $(T),$(foreach t,$(TESTS),$(if $(findstring $(T),$(t)),$(t))),$(TESTS))
.PHONY: unit
unit: $(RUN)
	scripts/run-tests $(B) $(RUN)

.PHONY: clean
clean:
	rm -rf $(B)

.SECONDARY:
-include $(wildcard $(B)/obj/*/*.d $(B)/obj/*/*/*.d)
