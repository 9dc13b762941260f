# Proofs by exploration: what threads do under the C++ memory model (docs/internals/proofs.md). The code under test is the
# product's, compiled once more with -fsanitize=thread and linked with our explorer in place of libtsan.
model_tests = test/model/explorer_test.sh test/model/protocol_test.sh test/model/ptx_test.sh
TESTS += $(model_tests)
EXTRA_DIST += $(model_tests) test/model/mutants.sh test/model/verdict.sh test/model/protocol.pml \
	test/model/ptx_model.py test/model/ptx_test.py

# As a preprocessor's flag, because the compiler's would link libtsan too. The code under test calls the library's
# functions by names of ours.
model_cppflags = -Itest/model/small $(AM_CPPFLAGS) -I$(srcdir)/test/model -fsanitize=thread
model_calls_cppflags = -I$(srcdir)/test/model/stand_in $(model_cppflags)
model_cxxflags = -std=c++20 -pthread -O1 -g1 -U_FORTIFY_SOURCE $(HETCOLL_WARNINGS) -Wno-tsan -Wno-mismatched-new-delete
model_names = --redefine-sym memcpy=model_memcpy --redefine-sym memmove=model_memmove \
	--redefine-sym memset=model_memset --redefine-sym pthread_mutex_lock=model_mutex_lock \
	--redefine-sym pthread_mutex_trylock=model_mutex_trylock --redefine-sym pthread_mutex_unlock=model_mutex_unlock \
	--redefine-sym _ZN7hetcoll13process_stateERKNS_15ProcessIdentityE=model_process_state

# What they say about a program's place is its address: not position independent.
model_ldflags = $(AM_LDFLAGS) -no-pie
model_libs = test/model/libnamed.a test/model/libexplorer.a libhetcoll.la -lgtest_main -lgtest
model_programs = test/model/litmus_test test/model/meeting_test test/model/executor_test test/model/queue_test \
	test/model/leave_test test/model/operation_test test/model/allocation_table_test

if WITH_MODEL
check_PROGRAMS += $(model_programs)
check_LIBRARIES += test/model/libwatched.a test/model/libwatched_calls.a test/model/libexplorer.a
check_DATA += test/model/libnamed.a test/model/libnamed_calls.a
endif
EXTRA_PROGRAMS += $(model_programs)
EXTRA_LIBRARIES += test/model/libwatched.a test/model/libwatched_calls.a test/model/libexplorer.a
CLEANFILES += test/model/libnamed.a test/model/libnamed_calls.a $(model_small)

# The code under test.
test_model_libwatched_a_SOURCES = \
	engine/call/operation_queue.cc engine/communicator/executor.cc engine/communicator/message_channels.cc \
	engine/communicator/pull_channels.cc engine/communicator/step_progress.cc \
	engine/meeting/call_mismatch.cc engine/meeting/exchange.cc engine/meeting/handed_on.cc \
	engine/meeting/meeting.cc engine/meeting/messages.cc \
	engine/meeting/node_group.cc engine/meeting/node_ranks.cc engine/meeting/rooms.cc \
	pointer_cache/allocation_table.cc
test_model_libwatched_a_CPPFLAGS = $(model_cppflags)
test_model_libwatched_a_CXXFLAGS = $(model_cxxflags)
test/model/libnamed.a: test/model/libwatched.a
	$(AM_V_GEN)$(OBJCOPY) $(model_names) test/model/libwatched.a $@

# Calls, with little around them.
test_model_libwatched_calls_a_SOURCES = \
	engine/call/allreduce.cc engine/call/call.cc engine/call/late_ranks.cc engine/call/operation.cc \
	engine/call/publish.cc engine/call/run.cc \
	test/model/gpu.h test/model/stand_in/engine/communicator/communicator.h
test_model_libwatched_calls_a_CPPFLAGS = $(model_calls_cppflags)
test_model_libwatched_calls_a_CXXFLAGS = $(model_cxxflags)
test/model/libnamed_calls.a: test/model/libwatched_calls.a
	$(AM_V_GEN)$(OBJCOPY) $(model_names) test/model/libwatched_calls.a $@

# Arrays small enough to look at all of them, and meetings that look at missing ranks in every poll: a number of polls
# left would make states differ. Nothing else is different.
model_small = test/model/small/pointer_cache/allocation_table.h test/model/small/engine/meeting/control_page.h \
	test/model/small/engine/meeting/meeting.h
model_smaller = s/kSetBits = 8, kWays = 4;/kSetBits = 1, kWays = 1;/;s/kWords = 1024;/kWords = 16;/;s/kPollsPerLook = 32;/kPollsPerLook = 1;/
$(model_small): test/model/small/%: %
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed '$(model_smaller)' $< >$@ && ! cmp -s $< $@
$(test_model_libwatched_a_OBJECTS) $(test_model_libranks_a_OBJECTS) $(test_model_meeting_test_OBJECTS) $(test_model_executor_test_OBJECTS) \
	$(test_model_libwatched_calls_a_OBJECTS) $(test_model_operation_test_OBJECTS) \
	$(test_model_leave_test_OBJECTS) $(test_model_queue_test_OBJECTS) $(test_model_allocation_table_test_OBJECTS): $(model_small)

test_model_libexplorer_a_SOURCES = \
	test/model/compiler_calls.cc \
	test/model/explorer.cc test/model/explorer.h \
	test/model/known_states.cc \
	test/model/memory.cc \
	test/model/plain_memory.cc \
	test/model/search.cc \
	test/model/stacks.cc test/model/state.h \
	test/model/trace.cc
test_model_libexplorer_a_CPPFLAGS = $(AM_CPPFLAGS)
# longjmp() to another stack is what a fortified library refuses.
test_model_libexplorer_a_CXXFLAGS = $(AM_CXXFLAGS) -O2 -U_FORTIFY_SOURCE -fno-builtin

test_model_litmus_test_SOURCES = test/model/litmus_test.cc
test_model_litmus_test_CPPFLAGS = $(model_cppflags)
test_model_litmus_test_CXXFLAGS = $(model_cxxflags)
test_model_litmus_test_LDFLAGS = $(model_ldflags)
test_model_litmus_test_LDADD = $(model_libs)

# Objects, not a library: `shared_page` of one_page.cc replaces libhetcoll's.
EXTRA_LIBRARIES += test/model/libranks.a
test_model_libranks_a_SOURCES = test/model/ranks.h test/model/ranks.cc test/model/one_page.cc
test_model_libranks_a_CPPFLAGS = $(model_cppflags)
test_model_libranks_a_CXXFLAGS = $(model_cxxflags)
model_ranks = $(test_model_libranks_a_OBJECTS) $(model_libs)
test_model_meeting_test_SOURCES = test/model/meeting_test.cc
test_model_meeting_test_CPPFLAGS = $(model_cppflags)
test_model_meeting_test_CXXFLAGS = $(model_cxxflags)
test_model_meeting_test_LDFLAGS = $(model_ldflags)
test_model_meeting_test_LDADD = $(model_ranks)

test_model_executor_test_SOURCES = test/model/executor_test.cc
test_model_executor_test_CPPFLAGS = $(model_cppflags)
test_model_executor_test_CXXFLAGS = $(model_cxxflags)
test_model_executor_test_LDFLAGS = $(model_ldflags)
test_model_executor_test_LDADD = $(model_ranks)

test_model_leave_test_SOURCES = test/model/leave_test.cc
test_model_leave_test_CPPFLAGS = $(model_cppflags)
test_model_leave_test_CXXFLAGS = $(model_cxxflags)
test_model_leave_test_LDFLAGS = $(model_ldflags)
test_model_leave_test_LDADD = $(model_ranks)

test_model_operation_test_SOURCES = test/model/operation_test.cc
test_model_operation_test_CPPFLAGS = $(model_calls_cppflags)
test_model_operation_test_CXXFLAGS = $(model_cxxflags)
test_model_operation_test_LDFLAGS = $(model_ldflags)
test_model_operation_test_LDADD = test/model/libnamed_calls.a $(model_ranks)

test_model_queue_test_SOURCES = test/model/queue_test.cc
test_model_queue_test_CPPFLAGS = $(model_cppflags)
test_model_queue_test_CXXFLAGS = $(model_cxxflags)
test_model_queue_test_LDFLAGS = $(model_ldflags)
test_model_queue_test_LDADD = $(model_ranks)

test_model_allocation_table_test_SOURCES = test/model/allocation_table_test.cc
test_model_allocation_table_test_CPPFLAGS = $(model_cppflags)
test_model_allocation_table_test_CXXFLAGS = $(model_cxxflags)
test_model_allocation_table_test_LDFLAGS = $(model_ldflags)
test_model_allocation_table_test_LDADD = $(model_ranks)

# Also what takes minutes; and whether the tests find mistakes.
check-model: $(check_DATA) $(check_LIBRARIES) $(check_PROGRAMS)
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(model_tests)' HETCOLL_MODEL_HEAVY=1
check-mutants: $(model_programs)
	HETCOLL_SRCDIR='$(abs_srcdir)' HETCOLL_BUILDDIR='$(abs_builddir)' CXX='$(CXX)' OBJCOPY='$(OBJCOPY)' \
		FLAGS='$(model_cppflags) $(model_cxxflags)' NAMES='$(model_names)' LIBS='$(HWLOC_LIBS)' \
		bash $(srcdir)/test/model/mutants.sh $(MUTANTS)
.PHONY: check-model check-mutants
