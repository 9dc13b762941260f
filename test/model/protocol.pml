/* One collective call after another at the level of what ranks tell each other: engine/call/, one protocol after another. Spin
 * (Holzmann, "The SPIN Model Checker", 2003) goes through every order of the ranks' steps and every choice below.
 * A call to the driver may fail wherever the code makes one, FAULTS of them in all. Meetings are whole here: that they
 * are is what meeting_test.cc proves. A comment "= FILE FUNCTION" names the code; protocol_test.sh compares the
 * meetings of both.
 *
 *   N, CALLS, FAULTS   ranks, calls one after the other, failing driver calls altogether
 *   PROTOCOL                one protocol only; else any, the same on all ranks
 *   LATE               rank N-1 is expected last: the others begin without it
 *   LEAVES             rank N-1 may leave between two meetings: it dies, or a message of its failed
 *   WATCHED            the others see that a rank has left, and end their waits
 *   MUTANT             one mistake, see MUTANT == below: it has to be found
 *
 * What has to hold, see finish() and the end of rank(): no success without every rank's data, success on all ranks or
 * on none (but for a rank's own last copy), no buffer given back while a peer reads it, the same meetings in the same
 * order on all ranks, the same state after the call, nobody waits for ever.
 */
#ifndef N
#define N 2
#endif
#ifndef CALLS
#define CALLS 1
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef MUTANT
#define MUTANT 0
#endif

/* engine/meeting/flags.h */
#define DEV 1
#define HOST 2
#define STAGE 4
#define FAILED 8
#define NOMAP 16      /* kNoMapping */
#define NEWBUF 32
#define NOAGG 64
#define RANGE 128
#define NOTKEPT 256   /* a piece's input is overwritten and was not kept */

mtype = { wLarge, wSmall, wFixed, wNetwork, wCollective };                  /* protocols */
mtype = { mAgree, mMixed, mMapped, mStaged, mSum, mPiece, mClose, mConverted, mStop, mDeclined, mNone }; /* meetings */
mtype = { rNone, rSuccess, rError };                                        /* results */
mtype = { cFindingABufferABounce, cToFixedPoint, cCopyIn, cDescribingABuffer, cCopyToMemoryOfOurs, cStopping, cHostMemory, cMapping, cAKernelACopy, cFromFixedPoint, cCopyOut, cCopyToTheHost, cKeepingTheInput, cBringingTheInputBack }; /* what the driver is called for */

mtype protocol;
byte arrived[N];      /* the last meeting that a rank has come to */
short said[2 * N];    /* there, by parity */
mtype kind[2 * N];
byte calls_done[N];
mtype result_of[N];
bool undefined[2];    /* by parity of calls: some rank's part is not in the result */
bool alone[N];        /* this rank's own last copy has failed: it may return an error alone */
bool early[N];        /* reads its peers' memory before the agreement is over */
bool maps[N];         /* Peers::maps(): may memory be mapped on this communicator? */
bool left[N];         /* comes to no meeting any more */
bool somebody_left;
byte faults = FAULTS;

#define SAID(rank, n) said[((n) % 2) * N + (rank)]
#define KIND(rank, n) kind[((n) % 2) * N + (rank)]
#define TOLD (flags | (failed -> FAILED : 0))
#if N == 2
#define ALL_THERE (arrived[0] >= n && arrived[1] >= n)
#define OTHERS_THERE (arrived[0] >= n)
#define OTHERS_SAID (SAID(0, n))
#define IS_READ(r) (early[1 - r])
#define GONE ((left[0] && arrived[0] < n) || (left[1] && arrived[1] < n))
#define ALL_DONE(call) ((calls_done[0] >= call || left[0]) && (calls_done[1] >= call || left[1]))
#else
#define ALL_THERE (arrived[0] >= n && arrived[1] >= n && arrived[2] >= n)
#define OTHERS_THERE (arrived[0] >= n && arrived[1] >= n)
#define OTHERS_SAID (SAID(0, n) | SAID(1, n))
#define IS_READ(r) (early[(r + 1) % 3] || early[(r + 2) % 3])
#define GONE ((left[0] && arrived[0] < n) || (left[1] && arrived[1] < n) || (left[2] && arrived[2] < n))
#define ALL_DONE(call) ((calls_done[0] >= call || left[0]) && (calls_done[1] >= call || left[1]) && \
                        (calls_done[2] >= call || left[2]))
#endif

/* Ranks are alike, but for a late one. So if one driver call fails and nothing else happens, it may be the last rank's;
 * and so may the rank be that leaves. Spin goes on with the others at once where they do not even look. */
#if defined(LATE) && defined(LEAVES)
#error the last rank leaves, so it cannot be the late one
#endif
#define FAILS(where) atomic { faults > 0 -> faults--; broke = true; printf("rank %d: a driver call FAILS: %e\n", r, where) }

inline driver(where) {   /* a call to the driver */
    if
#if FAULTS > 1 || defined(LATE) || defined(LEAVES)
    :: FAILS(where)
    :: broke = false
#else
    :: r != N - 1 -> broke = false
    :: r == N - 1 -> if :: FAILS(where) :: broke = false fi
#endif
    fi
}
inline arrive(what, tells) {
    atomic {
        n = arrived[r] + 1;
        SAID(r, n) = tells;
        KIND(r, n) = what;
        arrived[r] = n;
        printf("rank %d: call %d meeting %d %e says %d\n", r, call, n, what, tells);
    }
}
inline hear() {          /* all are there: arrived is n or n + 1 */
    i = 0; all = 0;
    do
    :: i < N ->
        assert(KIND(i, n) == KIND(r, n));      /* the same meeting on every rank */
        all = all | SAID(i, n);
        i++
    :: else -> break
    od
}
#ifdef WATCHED
#define OR_GONE :: atomic { GONE -> left[r] = true; printf("rank %d: somebody has left\n", r) }; finish(rError); goto over
#else
#define OR_GONE
#endif
inline all_met() {
    if
    :: atomic { ALL_THERE -> hear() }
    OR_GONE
    fi
}
inline meet(what, tells) { arrive(what, tells); all_met() }
inline finish(what) {
    atomic {
        printf("rank %d: call %d returns %e\n", r, call, what);
        assert(somebody_left || !IS_READ(r));  /* the application may free its buffers now */
        result_of[r] = what;
        assert(what != rSuccess || !undefined[call % 2])
    }
}
inline fail_if_told() {  /* fail_together() */
    if
    :: (all & (FAILED | RANGE)) != 0 -> finish(rError); goto over
    :: else
    fi
}
inline lose_part() {     /* this rank's part will not be right */
    if :: failed -> undefined[call % 2] = true :: else fi
}
#ifdef LEAVES
#define MAY_LEAVE if \
    :: r == N - 1 -> \
        if \
        :: atomic { !somebody_left -> somebody_left = true; left[r] = true; printf("rank %d: leaves\n", r) }; finish(rError); goto over \
        :: true \
        fi \
    :: r != N - 1 \
    fi
#else
#define MAY_LEAVE skip
#endif

proctype rank(byte r)
{
    byte call, n, i;
    short flags, all;
    bool failed, broke, device, wants_map, copies_out, kept, lost, overwritten;
    do
    :: call < CALLS && left[r] ->                               /* = operation.cc step: broken */
        finish(rError); goto over
    :: call < CALLS && !left[r] ->
        failed = false; flags = 0; alone[r] = false;
        /* = look.cc look_at_buffers, ready.cc make_ready */
        if :: device = true :: device = false fi;
        driver(cFindingABufferABounce);
        if
        :: broke && device -> if :: failed = true :: flags = DEV | STAGE fi
        :: !broke && device -> if :: flags = DEV :: flags = DEV | STAGE fi
        :: else -> flags = HOST
        fi;
        MAY_LEAVE;
        if
        :: protocol == wFixed ->                                     /* = fixed_point.cc fixed_point */
            driver(cToFixedPoint); failed = failed || broke;
            if :: flags = flags | RANGE :: true fi
        :: protocol == wSmall ->                                     /* = host.cc host */  
            driver(cCopyIn); failed = failed || broke;
            lose_part();
            meet(mSum, TOLD);                                   /* = host.cc host */  
            fail_if_told();
            goto copy_out
        :: else
        fi;
        /* = publish.cc publish */
        wants_map = maps[r];
        if
        :: wants_map && !failed && flags == DEV ->
            driver(cDescribingABuffer);
            if
            :: broke -> flags = flags | NOMAP
            :: else ->
                driver(cCopyToMemoryOfOurs); failed = failed || broke;
                if :: !failed -> if :: flags = flags | NEWBUF :: true fi :: else fi
            fi
        :: wants_map && (failed || flags != DEV) -> flags = flags | NOMAP
        :: else
        fi;
        /* A call that the rank cannot begin, as refusal.cc says, has failed here. */
        arrive(mAgree, TOLD); /* = allreduce.cc allreduce, attach.cc attach, collective.cc collective, prepared.cc attach */
#ifdef LATE
        /* = late_ranks.cc met */
        if
        :: r != N - 1 && wants_map && !failed && (flags & ~NEWBUF) == DEV ->
            if
            :: atomic { OTHERS_THERE && arrived[N - 1] < n && OTHERS_SAID == DEV ->
                   early[r] = true; printf("rank %d: begins early\n", r) }
            :: ALL_THERE
            fi
        :: else
        fi;
#endif
        all_met();
#ifdef LATE
        /* = late_ranks.cc stop, stopped */
        if
        :: early[r] && (all & ~(DEV | NEWBUF)) != 0 ->
            driver(cStopping); failed = failed || broke;
            atomic { early[r] = false; printf("rank %d: has stopped\n", r) }
        :: else
        fi;
#if MUTANT != 7
        /* Whoever has shared buffers keeps them until all have stopped. */
        if
        :: wants_map && (all & (FAILED | RANGE)) != 0 -> arrive(mStop, 0); all_met(); finish(rError); goto over
        :: else
        fi;
#endif
#endif
decide:
        fail_if_told();
        if
        :: protocol == wCollective && (all & (HOST | STAGE)) != 0 -> goto declined
        :: else
        fi;
        if
        :: (all & DEV) == 0 -> goto success                     /* = allreduce.cc previous */
        :: (all & DEV) != 0 && (all & STAGE) != 0 -> goto stage
        :: (all & DEV) != 0 && (all & STAGE) == 0 && (all & HOST) != 0 ->
            if
            :: KIND(r, n) == mAgree ->                          /* = allreduce.cc mixed */
                if :: !device -> driver(cHostMemory); flags = (broke -> flags | STAGE : flags) :: else fi;
                meet(mMixed, TOLD);                             /* = allreduce.cc mixed */
                goto decide
            :: else -> goto running
            fi
        :: else
        fi;
        if :: protocol == wNetwork -> goto piece :: else fi;
        /* = allreduce.cc on_devices */
        if
        :: wants_map && (all & NOMAP) == 0 ->
            driver(cMapping);                                  /* = publish.cc map */
#if MUTANT == 1
            if :: broke -> maps[r] = false :: else fi           /* gives up alone */
#else
            if
            :: (all & NEWBUF) != 0 ->
                flags = flags | NEWBUF | (broke -> NOMAP : 0);
                meet(mMapped, TOLD);                            /* = publish.cc agree_on_mapping */
                if :: (all & NOMAP) != 0 -> maps[r] = false :: else fi
            :: else -> failed = failed || broke
            fi
#endif
        :: else
        fi;
running: /* = run.cc start_run, step_run */
        driver(cAKernelACopy); failed = failed || broke;
        lose_part();
#ifdef LATE
        early[r] = false;
#endif
        MAY_LEAVE;
#if MUTANT == 2
        failed = false;                                         /* forgets what the executor says */
#endif
        meet(mClose, TOLD); /* = run.cc close, allreduce.cc run_chosen, in_network.cc in_network, collective.cc collective, prepared.cc prepared */
#if MUTANT == 3
        all = (failed -> FAILED : 0);                           /* looks at its own flags only */
#endif
        fail_if_told();
        if :: goto copy_out :: protocol != wFixed -> goto success :: protocol == wFixed -> goto convert fi;
copy_out:
        if :: device -> driver(cCopyOut) :: else -> broke = false fi;
        if
        :: protocol == wFixed -> failed = failed || broke; goto convert
        :: protocol != wFixed && broke -> alone[r] = true; finish(rError); goto over
        :: else -> goto success
        fi;
convert: /* integers become floats again, then the ranks close once more */
        if :: !failed -> driver(cFromFixedPoint); failed = failed || broke :: else fi;
#if MUTANT == 10
        if :: failed -> finish(rError); goto over :: else -> goto success fi;
#endif
        lose_part();
        meet(mConverted, TOLD);                                 /* = fixed_point.cc fixed_point, as_floats.cc as_floats */
        fail_if_told();
        goto success;
stage:  /* = staged.cc staged */
        if :: device && !failed -> driver(cCopyToTheHost); failed = failed || broke :: else fi;
        lose_part();
#if MUTANT != 4
        meet(mStaged, TOLD);                                    /* = staged.cc staged */
        fail_if_told();
#endif
        goto copy_out;
declined: /* the previous module does it on copies, if all ranks have made theirs */
        driver(cCopyToTheHost); failed = failed || broke;
        lose_part();
#if MUTANT == 9
        arrive(mDeclined, 0);                                   /* the previous module's messages say nothing */
#else
        arrive(mDeclined, TOLD);                                /* = collective.cc copies */
#endif
        all_met();
#if MUTANT == 9
        if :: failed -> finish(rError); goto over :: else fi;
#endif
        fail_if_told();
        goto copy_out;
piece:  /* = in_network.cc in_network */
        if :: kept = true :: kept = false; printf("rank %d: no memory to keep its input\n", r) fi;
        if :: kept -> driver(cKeepingTheInput); failed = failed || broke :: else fi;
        if                                                      /* the aggregator answers, or is lost */
        :: lost = false; overwritten = true
        :: lost = true; overwritten = false; printf("rank %d: has lost its aggregator\n", r)
        :: lost = true; overwritten = true; printf("rank %d: has lost its aggregator half-way\n", r)
        fi;
        lose_part();
        if :: lost && !kept -> failed = true :: else fi;
        flags = (flags & ~NOMAP) | (lost -> NOAGG : 0);
#if MUTANT != 8
        if :: !kept -> flags = flags | NOTKEPT :: else fi;
#endif
        meet(mPiece, TOLD);                                     /* = in_network.cc in_network */
        fail_if_told();
        if :: (all & NOAGG) == 0 -> goto success :: else fi;
        if :: (all & NOTKEPT) != 0 -> finish(rError); goto over :: else fi;
        if :: kept -> driver(cBringingTheInputBack); failed = failed || broke; overwritten = broke :: else fi;
        atomic { if :: overwritten && !failed -> undefined[call % 2] = true;
            printf("rank %d: adds what is no longer its input\n", r) :: else fi };
        goto running;
success:
        finish(rSuccess);
over:
        early[r] = false;
        atomic {
            calls_done[r]++;
            call++;
            i = 0;
            do
            :: i < N ->
                if
                :: calls_done[i] == call && !somebody_left ->
                    assert((result_of[i] == rSuccess) == (result_of[r] == rSuccess) || alone[i] || alone[r]);
                    assert(maps[i] == maps[r])
                :: else
                fi;
                i++
            :: else -> break
            od
        };
        /* The application comes together between its calls, so that results can be compared. */
        atomic { ALL_DONE(call) -> undefined[call % 2] = false }
    :: else -> break
    od
}

init {
    atomic {
        byte k = 0;
        bool mapped;
#ifdef PROTOCOL
        protocol = PROTOCOL;
#else
        if :: protocol = wLarge :: protocol = wSmall :: protocol = wFixed :: protocol = wNetwork :: protocol = wCollective fi;
#endif
#ifdef LATE
        mapped = true;
#else
        if :: mapped = true :: mapped = false fi;
#endif
        do :: k < N -> maps[k] = mapped; run rank(k); k++ :: else -> break od
    }
}
