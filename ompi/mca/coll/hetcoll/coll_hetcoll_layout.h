/* The classes of Open MPI whose objects hetcoll makes, reads or has inside its own. Each has a
 * descriptor in its library with the size of its objects, and no configuration changes the
 * descriptor's own layout: so a library tells whether headers describe it. Read at load
 * (coll_hetcoll_layout.c) and by configure (config/hetcoll_open_mpi.m4).
 *
 * Not ompi_proc_t, whose end depends on the transports that Open MPI's configure found: hetcoll
 * reads its opal_proc_t only. */
#ifndef MCA_COLL_HETCOLL_LAYOUT_H
#define MCA_COLL_HETCOLL_LAYOUT_H

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/group/group.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_vari.h"
#include "opal/util/info_subscriber.h"
#include "opal/util/proc.h"

#define HETCOLL_CLASSES(X)            \
    X(ompi_communicator_t)            \
    X(ompi_datatype_t)                \
    X(ompi_op_t)                      \
    X(ompi_group_t)                   \
    X(ompi_request_t)                 \
    X(ompi_coll_base_nbc_request_t)   \
    X(mca_coll_base_module_t)         \
    X(mca_coll_base_avail_coll_t)     \
    X(mca_base_component_list_item_t) \
    X(mca_base_var_t)                 \
    X(mca_base_var_file_value_t)      \
    X(opal_object_t)                  \
    X(opal_infosubscriber_t)          \
    X(opal_list_item_t)               \
    X(opal_list_t)                    \
    X(opal_mutex_t)                   \
    X(opal_hash_table_t)              \
    X(opal_convertor_t)               \
    X(opal_datatype_t)                \
    X(opal_proc_t)

#endif
