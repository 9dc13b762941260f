#!/bin/bash
# reports.sh: what users have reported as broken elsewhere, on a friendly driver and a hostile one.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

export EMU_NUM_DEVICES=2
for ranks in 2 3 4; do
    export EMU_HOSTILE=$((ranks != 3))
    for calls in complex nan unread local scatter bottom freed; do
        case_ $ranks ob1 "$forced" reported_calls $calls
    done
    for program in captures devices registered signals threads children; do
        case_ $ranks ob1 "$forced" reported_programs $program
    done
    wrapper="env LD_PRELOAD=$build/test/mpi/pmpi_tool.so" case_ $ranks ob1 "$forced" reported_programs tool
    also_expected='hetcoll: .*(descriptor|Too many open files|reason)'
    for program in descriptors no_descriptors; do
        case_ $ranks ob1 "$forced" reported_programs $program
    done
    also_expected=
done

end_cases
