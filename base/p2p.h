/* Point-to-point messages between the ranks of one communicator, as a table of functions: Open
 * MPI's PML in the component, queues in memory in unit tests, actors in the simulator. Plain C,
 * because the component fills it in C. */
#ifndef HETCOLL_BASE_P2P_H
#define HETCOLL_BASE_P2P_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hetcoll_p2p {
    void *context;
    int rank;
    int size;
    /* Start to send or receive `bytes` bytes. Messages between two ranks with the same tag match in
     * the order in which they were started. Zero, or an error code of the table's owner; *request
     * is set on success only. */
    int (*isend)(void *context, const void *buffer, size_t bytes, int peer, int tag,
                 void **request);
    int (*irecv)(void *context, void *buffer, size_t bytes, int peer, int tag, void **request);
    /* 1 complete (and *request freed), 0 pending, negative failed (and freed). Never progresses. */
    int (*test)(void *context, void **request);
    /* Lets everything in flight advance, other communicators' work too. */
    void (*progress)(void *context);
    /* Nonzero: ranks share processors, so a rank that waits long yields its own. */
    int shares_processor;
    /* Names the communicator in reports. */
    uint32_t comm_id;
    /* Zero while all ranks can come to a collective; else, and from then on, an error code of the
     * table's owner: a rank has died, or one has revoked the communicator. Requests then complete
     * in the end, whoever is their peer. Null: that never happens. */
    int (*broken)(void *context);
    /* Ends all ranks' program with that code of the table's owner, because some would wait for this
     * one for ever. May return. Null: nothing can. */
    void (*end_job)(void *context, int code);
};

#ifdef __cplusplus
}
#endif
#endif
