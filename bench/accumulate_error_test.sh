#!/bin/sh
# accumulate_error_test.sh: what is rounded once on a node is right to half a unit; bench/accumulate_error says so.
"${HETCOLL_BUILDDIR:-.}/bench/accumulate_error" 16 | tail -n 1 | grep 'ranks: met$'
