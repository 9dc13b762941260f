/* The facts that a process publishes when it starts, and their merge over a communicator's ranks.
 */
#ifndef HETCOLL_ENGINE_TYPES_FACTS_H
#define HETCOLL_ENGINE_TYPES_FACTS_H

#include "engine/types/settings.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which process, and where: transport/node_identity.h. */
struct hetcoll_identity {
    uint64_t host, start_time;
    int32_t pid, reserved;
    uint64_t machine;
    char host_name[40]; /* for reports; cut off where it is longer */
};

/* The merge of two processes' values: the column `agree` of HETCOLL_PARAMETERS.
 *   LEAST, MOST   the smaller, the larger one
 *   SAME          0 if they differ, and ..._differs is 1. The facts have a hash of texts; 0: off
 *   VITAL         if they differ the ranks have no common protocol */
#define HETCOLL_FACT_LOCAL(name)
#define HETCOLL_FACT_ALIKE(name)
#define HETCOLL_FACTS                                                                         \
    HETCOLL_PARAMETERS                                                                        \
    HETCOLL_FACT_MOST(may_have_gpu)                                                           \
    HETCOLL_FACT_LEAST(slot_bytes)  /* of a bounce with few channels: bounds every message */ \
    HETCOLL_FACT_LEAST(collectives) /* others than allreduce are handed to the core too */
#define HETCOLL_PARAMETER_AS_FACT(kind, name, value, allowed, agree, ...) HETCOLL_FACT_##agree(name)

/* The facts that a process publishes to all others at its start, or their merge over some
 * processes. Fixed layout: it crosses nodes. Numbers are the parameters', but algorithm          0:
 * by the rules, else 1 + enum Algorithm ipc                1: peers' memory may be mapped check 1:
 * off accumulate         1: element */
struct hetcoll_facts {
    uint64_t protocol; /* HETCOLL_PROTOCOL; 0: the ranks have no common one */
#define HETCOLL_PARAMETER HETCOLL_PARAMETER_AS_FACT
#define HETCOLL_FACT_LEAST(name) uint64_t name;
#define HETCOLL_FACT_MOST(name) uint64_t name;
#define HETCOLL_FACT_VITAL(name) uint64_t name;
#define HETCOLL_FACT_SAME(name) uint64_t name, name##_differs;
    HETCOLL_FACTS
#undef HETCOLL_FACT_LEAST
#undef HETCOLL_FACT_MOST
#undef HETCOLL_FACT_VITAL
#undef HETCOLL_FACT_SAME
#undef HETCOLL_PARAMETER
    struct hetcoll_identity identity; /* not merged */
};
#define HETCOLL_PROTOCOL 14u

/* Combines the facts of two processes; associative and commutative, so that every rank gets the
 * same settings for a communicator. Without a common protocol or a GPU nobody uses it there. */
void hetcoll_facts_merge(struct hetcoll_facts *into, const struct hetcoll_facts *other);

#ifdef __cplusplus
}
#endif
#endif
