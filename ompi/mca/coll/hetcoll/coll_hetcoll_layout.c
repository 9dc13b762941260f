/* Do the headers that hetcoll was compiled with describe the Open MPI that it runs in? Those of the
 * same release configured otherwise (--enable-debug, CUDA in 4.1) compile without a warning, and
 * every job crashes or goes wrong. */
#include "coll_hetcoll_layout.h"
#include "coll_hetcoll.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"

#define WAY_OUT "rebuild it with the headers of this Open MPI (configure --with-ompi-source)"

struct sized {
    const char *name, *symbol;
    size_t bytes; /* in the headers */
};

static const struct sized classes[] = {
#define HETCOLL_CLASS(type) {#type, #type "_class", sizeof(type)},
    HETCOLL_CLASSES(HETCOLL_CLASS)
#undef HETCOLL_CLASS
};

/* Structures without a class, as variables of the library. */
static const struct sized variables[] = {
    {"mca_pml", "mca_pml", sizeof mca_pml},
    {"mca_pml_base_selected_component", "mca_pml_base_selected_component",
     sizeof mca_pml_base_selected_component},
    {"ompi_coll_base_framework", "ompi_coll_base_framework", sizeof ompi_coll_base_framework},
    {"opal_process_info", "opal_process_info", sizeof opal_process_info},
};

/* In the library; 0: it does not tell. */
static size_t bytes_of_class(const char *symbol)
{
    const opal_class_t *descriptor = dlsym(RTLD_DEFAULT, symbol);
    return NULL == descriptor ? 0 : descriptor->cls_sizeof;
}

static size_t bytes_of_variable(const char *symbol)
{
    Dl_info info = {.dli_sname = NULL};
    const ElfW(Sym) *entry = NULL;
    const void *address = dlsym(RTLD_DEFAULT, symbol);
    if (NULL == address || 0 == dladdr1(address, &info, (void **)&entry, RTLD_DL_SYMENT) ||
        NULL == entry || NULL == info.dli_sname || 0 != strcmp(info.dli_sname, symbol)) {
        return 0;
    }
    return entry->st_size;
}

static bool is_same(const struct sized *ours, size_t theirs)
{
    if (0 == theirs || theirs == ours->bytes) {
        return true;
    }
    char why[256];
    snprintf(why, sizeof why,
             "was built with other headers than this Open MPI's: %s has %zu bytes in them and %zu "
             "in the library",
             ours->name, ours->bytes, theirs);
    mca_coll_hetcoll_step_aside(why, WAY_OUT);
    return false;
}

bool mca_coll_hetcoll_has_sizes(void)
{
    bool same = true;
    for (size_t i = 0; same && i < sizeof classes / sizeof *classes; ++i) {
        same = is_same(&classes[i], bytes_of_class(classes[i].symbol));
    }
    for (size_t i = 0; same && i < sizeof variables / sizeof *variables; ++i) {
        same = is_same(&variables[i], bytes_of_variable(variables[i].symbol));
    }
    return same;
}

static bool is_double(const struct ompi_datatype_t *dtype)
{
    size_t bytes = 0;
    ompi_datatype_type_size(dtype, &bytes);
    return sizeof(double) == bytes && 0 == strcmp(dtype->name, "MPI_DOUBLE") &&
           ompi_datatype_is_predefined(dtype);
}

static bool is_sum(struct ompi_op_t *op)
{
    return ompi_op_is_intrinsic(op) && ompi_op_is_commute(op) &&
           OMPI_OP_BASE_FORTRAN_SUM == op->o_f_to_c_index && 0 == strcmp(op->o_name, "MPI_SUM");
}

/* A program that uses sessions alone has no such communicators. */
static bool is_null(struct ompi_communicator_t *comm)
{
    return NULL == comm->c_local_group ||
           (MPI_PROC_NULL == ompi_comm_rank(comm) && 0 == ompi_comm_size(comm));
}

static bool is_self(struct ompi_communicator_t *comm)
{
    return NULL == comm->c_local_group ||
           (0 == ompi_comm_rank(comm) && 1 == ompi_comm_size(comm) && !OMPI_COMM_IS_INTER(comm));
}

static const char *find_unlike(void)
{
    if (!is_double(MPI_DOUBLE)) {
        return "MPI_DOUBLE";
    }
    if (!is_sum(MPI_SUM)) {
        return "MPI_SUM";
    }
    if (!is_null(&ompi_mpi_comm_null.comm)) {
        return "MPI_COMM_NULL";
    }
    return is_self(&ompi_mpi_comm_self.comm) ? NULL : "MPI_COMM_SELF";
}

bool mca_coll_hetcoll_has_fields(void)
{
    static enum { UNKNOWN, SAME, OTHER } fields = UNKNOWN;
    if (OPAL_UNLIKELY(UNKNOWN == fields)) {
        const char *unlike = find_unlike();
        fields = NULL == unlike ? SAME : OTHER;
        if (NULL != unlike) {
            char why[256];
            snprintf(why, sizeof why,
                     "was built with other headers than this Open MPI's: read by them, %s is not "
                     "what the library made it",
                     unlike);
            mca_coll_hetcoll_step_aside(why, WAY_OUT);
        }
    }
    return SAME == fields;
}
