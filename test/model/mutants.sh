#!/bin/bash
# mutants.sh [WORD]: do the model tests find mistakes? Makes one mistake at a time in the code under test, or in a
# test, and runs the tests: one of them must fail. With a WORD only mutants with that word. make check-mutants.
set -u
: "${HETCOLL_SRCDIR:?make check-mutants}" "${HETCOLL_BUILDDIR:?}" "${CXX:?}" "${FLAGS:?}" "${NAMES:?}" "${OBJCOPY:?}"
cd "$HETCOLL_BUILDDIR" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
word=${1:-}
verdict_words="found MISSED"
. "$HETCOLL_SRCDIR/test/model/verdict.sh"
# Compiled again where a mutant is in a header: all that is looked at.
watched="engine/call/operation_queue engine/communicator/executor engine/communicator/message_channels \
    engine/communicator/pull_channels engine/communicator/step_progress engine/meeting/call_mismatch \
    engine/meeting/exchange engine/meeting/handed_on engine/meeting/meeting engine/meeting/messages \
    engine/meeting/node_group engine/meeting/node_ranks engine/meeting/rooms \
    pointer_cache/allocation_table"

compile() # SOURCE OBJECT FLAG...
{
    local source=$1 object=$2
    shift 2
    # shellcheck disable=SC2086
    $CXX "$@" $FLAGS -w -c "$source" -o "$object" && $OBJCOPY $NAMES "$object"
}

# mutant PROGRAM NAME FILE SED: with FILE so changed, PROGRAM must fail. Without FILE, SED are flags of the test.
mutant()
{
    local program=test/model/$1_test name=$2 file=$3 change=$4 objects= harness= source from=$HETCOLL_SRCDIR
    local calls= stand_in=
    if [ "$1" = operation ]; then # a call, with little around it
        calls=test/model/libnamed_calls.a
        stand_in=-I$HETCOLL_SRCDIR/test/model/stand_in
    fi
    [ ! -f "test/model/small/$file" ] || from=test/model/small
    case "$1 $name" in *"$word"*) ;; *) return ;; esac
    rm -rf "$work/mutant" && mkdir -p "$work/mutant/$(dirname "${file:-.}")"
    if [ -n "$file" ]; then
        sed "$change" "$from/$file" >"$work/mutant/$file"
        if cmp -s "$from/$file" "$work/mutant/$file"; then
            verdict 1 "$name" "nothing of $file is changed by: $change"
            return
        fi
        change=
    fi
    case $file in
    *.cc)
        # shellcheck disable=SC2086
        compile "$work/mutant/$file" "$work/mutant.o" $stand_in || exit 1
        objects=$work/mutant.o
        ;;
    *.h)
        for source in $watched; do
            compile "$HETCOLL_SRCDIR/$source.cc" "$work/${source##*/}.o" -I"$work/mutant" || exit 1
            objects="$objects $work/${source##*/}.o"
        done
        ;;
    esac
    harness=$program-$1_test.o
    if [ -z "$objects" ] || [ "${file%.h}" != "$file" ]; then
        # shellcheck disable=SC2086
        compile "$HETCOLL_SRCDIR/$program.cc" "$work/harness.o" $change $stand_in -I"$work/mutant" || exit 1
        harness=$work/harness.o
    fi
    # shellcheck disable=SC2086
    $CXX -pthread -no-pie "$harness" test/model/libranks_a-ranks.o test/model/libranks_a-one_page.o $objects \
        $calls test/model/libnamed.a test/model/libexplorer.a .libs/libhetcoll.a ${LIBS:-} -lgtest_main -lgtest -ldl -o "$work/run" || exit 1
    # Random executions first, because they find most and take least; what takes minutes last.
    local status=0 filter
    for filter in '*AtRandom*' '-*AtRandom*:Heavy*:*/Heavy*' 'Heavy*:*/Heavy*'; do
        [ "$status" != 0 ] ||
            "$work/run" --gtest_filter="$filter" --gtest_fail_fast --gtest_brief=1 >"$work/output" 2>&1 || status=$?
    done
    local why
    why=$(grep -m 1 -o 'REFUTED: .*' "$work/output" | cut -c 10-)
    [ "$status" != 0 ] && [ -n "$why" ]
    verdict $? "$name" "${why:-$(tail -n 1 "$work/output")}"
}

m=engine/meeting/meeting.cc
mutant meeting "arrived loaded relaxed" $m '/all_arrived() noexcept/,/^}/s/memory_order_acquire/memory_order_relaxed/'
mutant meeting "arrived stored relaxed" $m 's/arrived.store(number_, std::memory_order_release)/arrived.store(number_, std::memory_order_relaxed)/'
mutant meeting "flags not doubled" $m 's/said\[[^]]*\]/said[0]/'
mutant meeting "payload not doubled" engine/meeting/node_group.h 's/payload\[turn\]/payload[0]/'
mutant meeting "sum not doubled" engine/meeting/node_group.h 's/sum\[turn\]/sum[0]/'
mutant meeting "the number before the flags" $m '/own.said\[number_ % 2\] = flags;/{h;d};/own.arrived.store/{G}'
mutant meeting "nobody may be ahead" $m 's/ && arrived != number_ + 1//'
mutant meeting "released loaded relaxed" $m 's/released.load(std::memory_order_acquire)/released.load(std::memory_order_relaxed)/'
mutant meeting "released stored relaxed" $m 's/released.store(number_, std::memory_order_release)/released.store(number_, std::memory_order_relaxed)/'
mutant meeting "released before the result" $m '/own.result\[number_ % 2\] = flags_;/{h;d};/own.released.store/{G}'
mutant meeting "late: arrived loaded relaxed" $m '/flags_without/,/^}/s/memory_order_acquire/memory_order_relaxed/'
mutant meeting "late: the other side's flags" $m '/flags_without/,/^}/s/said\[number_ % 2\]/said[(number_ + 1) % 2]/'
mutant meeting "the last rank is left out" $m 's/seen_ < group_->local_size()/seen_ + 1 < group_->local_size()/'

e=engine/communicator/pull_channels.cc
mutant executor "peers' progress loaded relaxed" $e '/::progress_of_peer/,/^}/s/memory_order_acquire/memory_order_relaxed/'
mutant executor "offers stored relaxed" $e '/store(ready,$/,/;/s/memory_order_release/memory_order_relaxed/'
mutant executor "all is offered at once" $e 's/ready = steps_.ready_bytes(offer.step);/ready = steps_.extent(offer.step).bytes;/'
mutant executor "ends before peers have read" engine/communicator/executor.cc 's/ || (!stopped_ .*all_are_read())//'
mutant executor "pulls what is not offered" $e 's/progress_of_peer(i) < end/progress_of_peer(i) < 1/'
mutant executor "the last call's progress is left" engine/meeting/node_group.cc 's/word < used_words_;/word + 1 < used_words_;/'
mutant executor "announced before the last close" "" -DHETCOLL_MUTANT_ANNOUNCES_BEFORE_CLOSE
mutant executor "announced after the agreement" "" -DHETCOLL_MUTANT_ANNOUNCES_AFTER_AGREEMENT
mutant executor "no closing agreement" "" -DHETCOLL_MUTANT_NEVER_CLOSES

l=engine/meeting/node_group.cc
mutant leave "the work is not marked" $l '/::may_touch_peers() const/,/^}/{/works.store(1/d}'
mutant leave "the work is marked with a release only" $l '/::may_touch_peers() const/,/^}/s/works.store(1, std::memory_order_seq_cst)/works.store(1, std::memory_order_release)/'
mutant leave "who has left is not looked at" $l '/::may_touch_peers() const/,/^}/s/return false;//'
mutant leave "who has left is loaded acquire" $l '/::may_touch_peers() const/,/^}/s/load(std::memory_order_seq_cst)/load(std::memory_order_acquire)/'
mutant leave "leaves without a word" $l '/::leave() const/,/^}/{/left.store(1/d}'
mutant leave "leaves with a release only" $l '/::leave() const/,/^}/s/left.store(1, std::memory_order_seq_cst)/left.store(1, std::memory_order_release)/'
mutant leave "leaves without waiting" $l '/::leave() const/,/^}/s/return false;//'
mutant leave "peers' work is loaded acquire" $l '/::leave() const/,/^}/s/load(std::memory_order_seq_cst)/load(std::memory_order_acquire)/'
mutant leave "waits for the dead" $l 's/is_alive(process_state(.*)))) {/true) {/'
mutant leave "leaves and keeps its own mark" $l '/::leave() const/,/^}/{/works.store(0/d}'
mutant leave "the end of work is stored relaxed" $l '/::touches_no_peers/,/^}/s/memory_order_release/memory_order_relaxed/'
mutant leave "leaves while its kernel runs" "" -DHETCOLL_MUTANT_LEAVES_WHILE_IT_WORKS
mutant leave "does not ask whether peers stay" "" -DHETCOLL_MUTANT_ASKS_NOBODY

o=engine/call
mutant operation "leaves without asking its peers" $o/operation.cc 's/ || !call_.comm.departure().step()//'
mutant operation "leaves while its kernel runs" $o/operation.cc 's/ || reduces || / || /'
mutant operation "does not see that ranks may never come" $o/operation.cc '/^    if (const int code = call_.comm.membership().lost()/,/^    }/d'
mutant operation "does not ask whether peers stay" $o/allreduce.cc '/co_await peers_stay(call);/d'
mutant operation "no closing agreement" $o/allreduce.cc 's/const Flags closed = co_await close(call, timed);/const Flags closed{};/'
mutant operation "closes before it has run" $o/allreduce.cc '/co_await ran(call);/d;s/const Flags closed = co_await close(call, timed);/&\n    co_await ran(call);/'
mutant operation "its work is over when it begins" $o/run.cc 's/^    if (row_of(choice.algorithm).is_one_kernel()) {/    call.comm.membership().touches_no_peers();\n&/'
mutant operation "maps before the agreement" $o/allreduce.cc 's/^        call.start_agreement();/        static_cast<void>(co_await map(call, choice));\n&/'
mutant operation "announces nothing" $o/publish.cc 's/call.failure.ok() \&\& call.planner.mapped().publish()/false/'

q=engine/call/operation_queue
mutant queue "a turn that takes no lock" $q.h 's/!queue.running_.exchange(true, std::memory_order_acquire)/(queue.running_.store(true, std::memory_order_relaxed), true)/'
mutant queue "a turn in spite of waiting ones" $q.h 's/queue.length_.load(std::memory_order_acquire) == 0 \&\&/queue.length_.load(std::memory_order_acquire) >= 0 \&\&/'
mutant queue "a turn given back relaxed" $q.h 's/running_.store(false, std::memory_order_release)/running_.store(false, std::memory_order_relaxed)/'
mutant queue "steps begin relaxed" $q.cc '/OperationQueue::step/,/^}/s/running_.exchange(true, std::memory_order_acquire)/running_.exchange(true, std::memory_order_relaxed)/'
mutant queue "steps end relaxed" $q.cc '/OperationQueue::step/,/^}/s/store(false, std::memory_order_release)/store(false, std::memory_order_relaxed)/'
mutant queue "two threads step at once" $q.cc '/OperationQueue::step/,/^}/s/running_.exchange(true, std::memory_order_acquire)/running_.load(std::memory_order_acquire)/'
mutant queue "a turn given back before the pop" $q.cc 's/const bool was_last = pop();/running_.store(false, std::memory_order_release); &/'

t=pointer_cache/allocation_table
mutant allocation_table "no second look at the version" $t.h 's/ || entry.version.load(std::memory_order_relaxed) != version//'
mutant allocation_table "an odd version is taken" $t.h 's/version % 2 != 0 || //'
mutant allocation_table "an entry is loaded relaxed" $t.h '/AllocationTable::find/,/^}/s/memory_order_acquire/memory_order_relaxed/'
mutant allocation_table "an entry is stored relaxed" $t.cc '/AllocationTable::write/,/^}/s/memory_order_release/memory_order_relaxed/'
mutant allocation_table "the version is not odd meanwhile" $t.cc '/entry.version.store(version + 1/d'
mutant allocation_table "an overtaken answer is kept" $t.cc 's/generation_.load() != generation/false/'
mutant allocation_table "the bounds after the generation" $t.cc '/^    lowest_.store/{h;d};/^    end_.store/{H;d};/^    Entry .place = nullptr/{H;g}'
mutant allocation_table "bounds and generation relaxed" $t.cc 's/generation_.fetch_add(1)/generation_.fetch_add(1, std::memory_order_relaxed)/;s/first >= end_.load()/first >= end_.load(std::memory_order_relaxed)/;s/lowest_.load()) {/lowest_.load(std::memory_order_relaxed)) {/;s/generation_.load() != /generation_.load(std::memory_order_relaxed) != /;s/\(lowest_\|end_\).store(\(.*\));/\1.store(\2, std::memory_order_relaxed);/'
mutant allocation_table "a release forgets one entry too few" $t.cc '/AllocationTable::forget/,/^}/s/write(entry, {});//'

# The protocol, which is a model itself: what protocol.pml calls MUTANT.
for number in 1 2 3 4 7 8 9 10 14; do
    case "protocol $number" in *"$word"*) ;; *) continue ;; esac
    why=$(bash "$HETCOLL_SRCDIR/test/model/protocol_test.sh" mutant "$number")
    verdict $? "protocol $number" "$why"
done

# Known to make no difference here, says the explorer: `result` need not be doubled, because its writer has been told
# that all have read it. In a ring follow_and_offer() need not acquire, finish_pulls() need not release and a pull need
# not wait for is_ready(), because the peers' offers order all that already. A turn need not be taken with acquire,
# because the length of the queue is loaded so.
summary
