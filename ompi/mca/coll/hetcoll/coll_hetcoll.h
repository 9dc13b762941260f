/* hetcoll as an Open MPI coll component: MPI_Allreduce on CUDA device buffers. One source for Open
 * MPI 4.1, 5.0 and main. Open MPI's types end in this folder; engine/hetcoll.h is the way to the
 * core. */
#ifndef MCA_COLL_HETCOLL_H
#define MCA_COLL_HETCOLL_H

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"

#include "engine/hetcoll.h"

#include <stdlib.h>
#include <string.h>

/* Known by its environment, where nothing of Open MPI's may be looked at. True, too, where that
 * does not tell. */
static inline bool mca_coll_hetcoll_speaks_for_node(void)
{
    const char *local_rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    return NULL == local_rank || 0 == strcmp(local_rank, "0");
}

/* The coll interface tells the releases apart: internals change with it, Open MPI's own version
 * macros say less. */
#if defined(MCA_COLL_BASE_VERSION_3_0_0) /* main */
#define HETCOLL_COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0
#define HETCOLL_MODULE_INSTALLS_ITSELF 1
typedef size_t hetcoll_count_t;
#elif defined(MCA_COLL_BASE_VERSION_2_4_0) /* 5.0 */
#define HETCOLL_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#define HETCOLL_MODULE_INSTALLS_ITSELF 0
typedef int hetcoll_count_t;
#elif defined(MCA_COLL_BASE_VERSION_2_0_0) /* 4.1 */
#define HETCOLL_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#define HETCOLL_MODULE_INSTALLS_ITSELF 0
typedef int hetcoll_count_t;
#else
#error "hetcoll does not know this Open MPI's coll interface: use Open MPI 4.1, 5.0 or main"
#endif

/* OBJ_NEW, from the process's reserve where there is no memory: see hetcoll_allocate(). */
#define HETCOLL_NEW(object, type)                          \
    do {                                                   \
        (object) = OBJ_NEW(type);                          \
        if (NULL == (object) && hetcoll_give_up_reserve()) \
            (object) = OBJ_NEW(type);                      \
    } while (0)

/* Which calls of other collectives on device memory are copied to the host (coll_hetcoll_staged.h).
 */
enum hetcoll_stage_mode {
    HETCOLL_STAGE_UNDECIDED,
    HETCOLL_STAGE_NOTHING,
    HETCOLL_STAGE_REDUCTIONS, /* and memory that Open MPI's CUDA support does not take everywhere */
    HETCOLL_STAGE_ALL,
};

typedef struct {
    mca_coll_base_component_t super;
    struct hetcoll_settings settings;
    struct { /* as the user wrote them; in the settings a number, or -1 for none of the words */
#define HETCOLL_STORE_BOOL(name)
#define HETCOLL_STORE_INT(name)
#define HETCOLL_STORE_BYTES(name)
#define HETCOLL_STORE_TEXT(name)
#define HETCOLL_STORE_WORD(name) char *name;
#define HETCOLL_PARAMETER(kind, name, ...) HETCOLL_STORE_##kind(name)
        HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
    } words;
    bool refused;                           /* a parameter's value */
    bool thread_multiple;                   /* MPI was initialised with MPI_THREAD_MULTIPLE */
    enum hetcoll_stage_mode stage_mode;     /* decided when the first communicator is made */
    struct hetcoll_process *process;        /* NULL: hetcoll is off in this process */
    struct hetcoll_log_file *log_file;      /* NULL: no coll_hetcoll_verbose_file */
    int chunk_bytes_index, algorithm_index; /* of the variables, for Open MPI's registry */
} mca_coll_hetcoll_component_t;

OMPI_DECLSPEC extern mca_coll_hetcoll_component_t mca_coll_hetcoll_component;

/* The state of a communicator; decided at its first MPI_Allreduce. */
enum hetcoll_state {
    HETCOLL_STATE_NEW,
    HETCOLL_STATE_PREVIOUS, /* no rank can have a GPU: hetcoll left the communicator's slot */
    HETCOLL_STATE_READY,
};

/* The slots of a communicator that hetcoll takes, and keeps the previous module's content of. The
 * names are Open MPI's. */
#define HETCOLL_SLOTS(X) \
    X(allreduce)         \
    X(iallreduce)        \
    X(allreduce_init)

/* Other work that advances as requests do, in the same turns: the queued calls of a stream, refused
 * calls. `step` returns how many pieces of it are complete, of those that the owner has told of by
 * mca_coll_hetcoll_stepper_wake(). */
typedef struct mca_coll_hetcoll_stepper {
    int (*step)(struct mca_coll_hetcoll_stepper *stepper);
    struct mca_coll_hetcoll_stepper *next;
} mca_coll_hetcoll_stepper_t;

/* coll_hetcoll_refusal.c */
struct mca_coll_hetcoll_refusals {
    mca_coll_hetcoll_stepper_t stepper;
    struct hetcoll_refusal first; /* without a core communicator */
    bool runs, added;
    int left; /* calls that the other ranks have not heard of; atomic */
};

typedef struct {
    mca_coll_base_module_t super;
    ompi_communicator_t *comm;
    enum hetcoll_state state;
    struct hetcoll_comm *core;    /* in HETCOLL_STATE_READY */
    struct hetcoll_comm *told;    /* the same, if all ranks come to it with other collectives */
    bool collectives;             /* they will, once there is one in the core */
    bool user_ops;                /* all ranks know the same user-defined ops */
    bool delegates;               /* the previous module reduces for the core now */
    struct hetcoll_call declined; /* the last collective that the ranks stage together */
    struct {                      /* the predefined type and op of the last call */
        struct ompi_datatype_t *dtype;
        struct ompi_op_t *op;
        int kind, operation;
        int dense;
        size_t bytes; /* of an element */
    } last;
#define HETCOLL_DECLARE(slot)                           \
    mca_coll_base_module_##slot##_fn_t previous_##slot; \
    mca_coll_base_module_t *previous_##slot##_module;
    HETCOLL_SLOTS(HETCOLL_DECLARE)
#undef HETCOLL_DECLARE
    /* Info keys (coll_hetcoll_info.c). */
    bool names_stream;
    void *named_stream;
    int algorithm;    /* as of struct hetcoll_facts; negative: not given */
    int reproducible; /* negative: not given */
    char tag[32];     /* of the trace; empty: none */
    struct mca_coll_hetcoll_attached *attached; /* CUDA streams (coll_hetcoll_stream.c) */
    /* Calls so far for hetcoll_call.number, of functions where all ranks come to the core. Counted
     * at their entry, before anything can fail on this rank alone. */
    unsigned calls;
    unsigned collective_calls; /* of these, other collectives in HETCOLL_STATE_NEW */
    struct mca_coll_hetcoll_refusals refusals;
    bool stages;                      /* it has taken the slots of all other collectives: */
    mca_coll_base_comm_coll_t staged; /* their previous content */
} mca_coll_hetcoll_module_t;

OBJ_CLASS_DECLARATION(mca_coll_hetcoll_module_t);

/* coll_hetcoll_fallback.c: makes `--mca coll hetcoll` alone a complete selection. */
int mca_coll_hetcoll_bring_fallback(void);

/* coll_hetcoll_component.c */
/* Parameters that the program has set since MPI_Init, through MPI_T, take the place of those in a
 * communicator's facts. */
void mca_coll_hetcoll_apply_settings(struct hetcoll_facts *facts);
/* "hetcoll WHY: hetcoll steps aside, WAY_OUT": for an Open MPI that this build does not fit, so the
 * line needs nothing that has a layout. One rank of each node says it. */
void mca_coll_hetcoll_step_aside(const char *why, const char *way_out);

/* coll_hetcoll_parameters.c */
/* A wrong value gives way to the parameter's default, or, if it changes results, is refused. One
 * line a node says so. */
void mca_coll_hetcoll_check_parameters(void);
/* Ends the job, in MPI_Init, if a value was refused. When the first communicator is made, because
 * an end before all ranks have looked would take away what the node's ranks share. */
void mca_coll_hetcoll_refuse(void);

/* coll_hetcoll_layout.c: was hetcoll built with headers of this library? If not, a line says so. */
/* Sizes of structures: before anything of them is read, and before other ranks are told anything,
 * so they leave too if this rank alone does (protocol 0 of struct hetcoll_facts). */
bool mca_coll_hetcoll_has_sizes(void);
/* Fields that have changed places in structures of the same size: once the first communicator is
 * made, on objects that are the same on every rank. MPI's own functions refuse to answer before the
 * end of MPI_Init, and an answer by rank could convince some ranks and not others. */
bool mca_coll_hetcoll_has_fields(void);

/* coll_hetcoll_module.c */
mca_coll_base_module_t *mca_coll_hetcoll_comm_query(struct ompi_communicator_t *comm,
                                                    int *priority);
/* For a communicator that is made while there is no memory: when there is. And at the component's
 * end. */
void mca_coll_hetcoll_keep_spare(void);
void mca_coll_hetcoll_drop_spare(void);
/* Our module of a communicator, from the module that a slot's function was called with; NULL: there
 * is none. HAN of Open MPI 4.1 calls its predecessor's function with its own module. */
mca_coll_hetcoll_module_t *mca_coll_hetcoll_find_module(struct ompi_communicator_t *comm);
static inline mca_coll_hetcoll_module_t *
mca_coll_hetcoll_own_module(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    return OPAL_LIKELY(((opal_object_t *)base)->obj_class == OBJ_CLASS(mca_coll_hetcoll_module_t))
               ? (mca_coll_hetcoll_module_t *)base
               : mca_coll_hetcoll_find_module(comm);
}
/* Gives the communicator's slots back to the previous modules, which then cost what they did
 * without hetcoll. Whoever saved our functions before may still call them. */
void mca_coll_hetcoll_leave(mca_coll_hetcoll_module_t *module);

/* coll_hetcoll_allreduce.c */
/* All operations on a communicator use this tag and the HETCOLL_TAGS - 1 below: they run one
 * after the other. Far from those of Open MPI's blocking collectives, which a nonblocking operation
 * of ours may overlap with; its nonblocking ones count down to here in eight million calls. The
 * most negative numbers that fit the 24 bits of pml ucx. */
#define MCA_COLL_HETCOLL_TAG (-(1 << 23) + HETCOLL_TAGS)
/* The first call on a communicator decides its state. Local, and the same on every rank.
 * MPI_ERR_NO_MEM: no memory for HETCOLL_STATE_READY, which the others have come to; `collectives`
 * and `user_ops` are set. May first wait for the others if `blocking`. */
int mca_coll_hetcoll_first_call(mca_coll_hetcoll_module_t *module, bool blocking);
int mca_coll_hetcoll_allreduce(const void *sbuf, void *rbuf, hetcoll_count_t count,
                               struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                               struct ompi_communicator_t *comm, mca_coll_base_module_t *module);

/* coll_hetcoll_refusal.c: a call of which this rank returns MPI_ERR_NO_MEM before it has met the
 * others, who get that too. It waits for nobody. Where they cannot be told the job ends. */
void mca_coll_hetcoll_refuse_call(mca_coll_hetcoll_module_t *module, unsigned number);
/* The same with MPI_ERR_OTHER, of a call whose stream is being captured; or they wait for this
 * rank's next call. */
void mca_coll_hetcoll_refuse_captured(mca_coll_hetcoll_module_t *module, unsigned number);
/* Waits until all have heard of the calls that were refused. */
void mca_coll_hetcoll_end_refusals(mca_coll_hetcoll_module_t *module);
static inline bool mca_coll_hetcoll_is_refusing(const mca_coll_hetcoll_module_t *module)
{
    return 0 != __atomic_load_n(&module->refusals.left, __ATOMIC_ACQUIRE);
}
/* In the module's destructor, before the core's communicator goes. */
void mca_coll_hetcoll_release_refusals(mca_coll_hetcoll_module_t *module);
static inline int mca_coll_hetcoll_refuse_blocking(mca_coll_hetcoll_module_t *module,
                                                   unsigned number)
{
    mca_coll_hetcoll_refuse_call(module, number);
    mca_coll_hetcoll_end_refusals(module);
    return MPI_ERR_NO_MEM;
}

/* coll_hetcoll_watch.c: ranks that wait in calls that Open MPI serves. */
/* When hetcoll takes the slots of these calls. */
void mca_coll_hetcoll_watch(void);
void mca_coll_hetcoll_watch_no_more(void);
/* The communicator's where Open MPI serves a call now of which its ranks have been told; NULL:
 * none. One call may be made of others: then its rest is not watched. With MPI_THREAD_MULTIPLE
 * nobody reads it. Few instructions count: those of a barrier are some 900. */
extern struct hetcoll_comm *mca_coll_hetcoll_serving;
static inline void mca_coll_hetcoll_serve(struct hetcoll_comm *core)
{
    __atomic_store_n(&mca_coll_hetcoll_serving, core, __ATOMIC_RELAXED);
}

/* coll_hetcoll_nonblocking.c */
int mca_coll_hetcoll_iallreduce(const void *sbuf, void *rbuf, hetcoll_count_t count,
                                struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                struct ompi_communicator_t *comm, ompi_request_t **request,
                                mca_coll_base_module_t *module);
int mca_coll_hetcoll_allreduce_init(const void *sbuf, void *rbuf, hetcoll_count_t count,
                                    struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                    struct ompi_communicator_t *comm, struct ompi_info_t *info,
                                    ompi_request_t **request, mca_coll_base_module_t *module);

/* coll_hetcoll_facts.c: what processes tell each other when they start. */
/* Where hetcoll is off that it is, so that others need not wait for an answer. */
int mca_coll_hetcoll_publish_facts(void);
/* The facts of each rank, for free(), and of all together, with protocol 0 if some rank published
 * none. NULL: no memory; `merged` is set all the same. */
struct hetcoll_facts *mca_coll_hetcoll_collect_facts(struct ompi_communicator_t *comm,
                                                     struct hetcoll_facts *merged);
void mca_coll_hetcoll_forget_facts(void);

/* coll_hetcoll_p2p.c */
/* Open MPI's error codes on their way through the core, which hands on what is negative: Open MPI's
 * own codes are negative, but MPI error classes, which requests end with, are positive. */
#define MCA_COLL_HETCOLL_MPI_ERRORS (-1000000)
static inline int mca_coll_hetcoll_error_to_core(int code)
{
    return 0 < code ? MCA_COLL_HETCOLL_MPI_ERRORS - code : code;
}
static inline int mca_coll_hetcoll_error_from_core(int code)
{
    switch (code) {
    case HETCOLL_ERROR_DEVICE: return MPI_ERR_OTHER;
    case HETCOLL_ERROR_NO_MEMORY: return MPI_ERR_NO_MEM;
    case HETCOLL_ERROR_RANGE: return MPI_ERR_ARG;
    case HETCOLL_ERROR_COLLECTIVE: return MPI_ERR_OTHER;
    case HETCOLL_ERROR_TYPE: return MPI_ERR_TYPE;
    case HETCOLL_ERROR_OP: return MPI_ERR_OP;
    case HETCOLL_ERROR_ROOT: return MPI_ERR_ROOT;
    case HETCOLL_ERROR_COUNT: return MPI_ERR_COUNT;
    default: return MCA_COLL_HETCOLL_MPI_ERRORS > code ? MCA_COLL_HETCOLL_MPI_ERRORS - code : code;
    }
}

/* Names a communicator in reports. */
static inline uint32_t mca_coll_hetcoll_comm_id(const struct ompi_communicator_t *comm)
{
#if defined(MCA_COLL_BASE_VERSION_2_4_0) || defined(MCA_COLL_BASE_VERSION_3_0_0)
    return comm->c_index;
#else
    return comm->c_contextid;
#endif
}

/* MPI_SUCCESS, or why no collective can succeed on the communicator any more: a rank has died, or
 * one has revoked it. */
int mca_coll_hetcoll_broken(struct ompi_communicator_t *comm);
void mca_coll_hetcoll_fill_p2p(struct hetcoll_p2p *p2p, struct ompi_communicator_t *comm);
/* Whether this Open MPI says that its messages take device pointers. */
bool mca_coll_hetcoll_pml_claims_device(void);

/* coll_hetcoll_types.c: sets kind, op, user_op, count, gap, span, dense and reason of a call.
 * Without a module no user-defined op is known. */
void mca_coll_hetcoll_describe(const mca_coll_hetcoll_module_t *module, struct hetcoll_call *call,
                               size_t count, struct ompi_datatype_t *dtype, struct ompi_op_t *op);

/* The same, of a call that is 0 so far. Programs repeat themselves: a small host call takes 0.2 us,
 * and finding out again what is reduced is several percent of that. Predefined handles are never
 * used for anything else. Whether it `recognizes` user-defined ops. */
void mca_coll_hetcoll_describe_anew(mca_coll_hetcoll_module_t *module, struct hetcoll_call *call,
                                    size_t count, struct ompi_datatype_t *dtype,
                                    struct ompi_op_t *op, bool recognizes);
static inline void mca_coll_hetcoll_describe_again(mca_coll_hetcoll_module_t *module,
                                                   struct hetcoll_call *call, size_t count,
                                                   struct ompi_datatype_t *dtype,
                                                   struct ompi_op_t *op, bool recognizes)
{
    if (OPAL_LIKELY(dtype == module->last.dtype && op == module->last.op)) {
        call->kind = module->last.kind;
        call->op = module->last.operation;
        call->count = count;
        call->span = call->data_bytes = count * module->last.bytes;
        call->dense = module->last.dense;
        return;
    }
    mca_coll_hetcoll_describe_anew(module, call, count, dtype, op, recognizes);
}

/* coll_hetcoll_runs.c: of `count` elements at `offset` from a buffer. */
void mca_coll_hetcoll_tell_runs(struct ompi_datatype_t *dtype, size_t count, ptrdiff_t offset,
                                hetcoll_take_run *take, void *to);

/* coll_hetcoll_info.c: while the communicator is being made. */
void mca_coll_hetcoll_look_at_info(mca_coll_hetcoll_module_t *module);
/* At the communicator's first call: what its keys say takes the place of what its facts do. */
void mca_coll_hetcoll_apply_info(const mca_coll_hetcoll_module_t *module,
                                 struct hetcoll_facts *facts);
static inline const char *mca_coll_hetcoll_tag(const mca_coll_hetcoll_module_t *module)
{
    return '\0' == module->tag[0] ? NULL : module->tag;
}

/* coll_hetcoll_stream.c */
/* Waits for the queued calls of a communicator and forgets its streams. */
void mca_coll_hetcoll_detach_all(mca_coll_hetcoll_module_t *module);
void mca_coll_hetcoll_register_stream_functions(void);

/* coll_hetcoll_counters.c: MPI_T performance variables. Where hetcoll is off they have no handles.
 */
void mca_coll_hetcoll_register_counters(void);
/* MPI_T's index of an enum hetcoll_counter; -1 for one that is negative. */
int mca_coll_hetcoll_counter_index(int counter);

/* coll_hetcoll_events.c: an MPI_T event, in an Open MPI that has them. Registered after the
 * counters and before the settings go to a process; begins when the process is there. */
void mca_coll_hetcoll_register_event(void);
void mca_coll_hetcoll_begin_events(void);
void mca_coll_hetcoll_end_events(void);

/* Writes a line if `level` is at most coll_hetcoll_verbose. Lines of the story, from level 1 on,
 * begin with host and rank. Those of level 1 are facts: a process writes each once. */
void mca_coll_hetcoll_log(int level, const char *line);

/* coll_hetcoll_story.c */
void mca_coll_hetcoll_begin_story(void);
bool mca_coll_hetcoll_was_told(const char *line); /* from the second time on */
const char *mca_coll_hetcoll_speaker(void);

#endif
