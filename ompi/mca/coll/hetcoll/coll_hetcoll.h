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

typedef struct {
    mca_coll_base_component_t super;
    int priority;
    bool enable;
    int verbose;
    char *fallback;
    unsigned long small_limit;
    unsigned long chunk_bytes;
    char *algorithm;
    char *node;
    char *topology_file;
    char *tuning_table;
    bool adapt_chunk;
    char *ipc;
    char *pointer_cache;
    char *pre_sync;
    char *pml_device;
    struct hetcoll_process *process;        /* NULL: hetcoll is off in this process */
    int chunk_bytes_index, algorithm_index; /* of the variables, for Open MPI's registry */
} mca_coll_hetcoll_component_t;

OMPI_DECLSPEC extern mca_coll_hetcoll_component_t mca_coll_hetcoll_component;

/* What is known about a communicator; decided at its first MPI_Allreduce. */
enum hetcoll_state {
    HETCOLL_STATE_NEW,
    HETCOLL_STATE_PREVIOUS, /* no rank can have a GPU: hetcoll left the communicator's slot */
    HETCOLL_STATE_READY,
};

typedef struct {
    mca_coll_base_module_t super;
    ompi_communicator_t *comm;
    enum hetcoll_state state;
    struct hetcoll_engine *engine; /* in HETCOLL_STATE_READY */
    struct {                       /* the predefined type and op of the last call */
        struct ompi_datatype_t *dtype;
        struct ompi_op_t *op;
        int kind, operation;
        size_t bytes; /* of an element */
    } last;
    mca_coll_base_module_allreduce_fn_t previous_allreduce;
    mca_coll_base_module_t *previous_allreduce_module;
} mca_coll_hetcoll_module_t;

OBJ_CLASS_DECLARATION(mca_coll_hetcoll_module_t);

/* coll_hetcoll_fallback.c: makes `--mca coll hetcoll` alone a complete selection. */
int mca_coll_hetcoll_bring_fallback(void);

/* coll_hetcoll_component.c: parameters that the program has set since MPI_Init, through MPI_T, take
 * the place of those in a communicator's facts. */
void mca_coll_hetcoll_apply_settings(struct hetcoll_facts *facts);

/* coll_hetcoll_module.c */
mca_coll_base_module_t *mca_coll_hetcoll_comm_query(struct ompi_communicator_t *comm,
                                                    int *priority);
/* Gives the communicator's slot back to the previous module, which then costs what it did without
 * hetcoll. Whoever saved our function before may still call it. */
void mca_coll_hetcoll_leave(mca_coll_hetcoll_module_t *module);

/* coll_hetcoll_allreduce.c */
int mca_coll_hetcoll_allreduce(const void *sbuf, void *rbuf, hetcoll_count_t count,
                               struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                               struct ompi_communicator_t *comm, mca_coll_base_module_t *module);

/* coll_hetcoll_facts.c: what processes tell each other when they start. */
int mca_coll_hetcoll_publish_facts(void);
/* The facts of each rank, for free(), and of all together, with protocol 0 if some rank published
 * none. NULL: no memory. */
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
    default: return MCA_COLL_HETCOLL_MPI_ERRORS > code ? MCA_COLL_HETCOLL_MPI_ERRORS - code : code;
    }
}

void mca_coll_hetcoll_fill_p2p(struct hetcoll_p2p *p2p, struct ompi_communicator_t *comm);
/* Whether this Open MPI says that its messages take device pointers. */
bool mca_coll_hetcoll_pml_claims_device(void);

/* coll_hetcoll_types.c: sets kind, op, count, gap, span and dense of a call. */
void mca_coll_hetcoll_describe(struct hetcoll_call *call, size_t count,
                               struct ompi_datatype_t *dtype, struct ompi_op_t *op);

/* coll_hetcoll_counters.c: MPI_T performance variables, of a process that uses hetcoll. */
void mca_coll_hetcoll_register_counters(void);

/* Writes a line if `level` is at most coll_hetcoll_verbose. */
void mca_coll_hetcoll_log(int level, const char *line);

#endif
