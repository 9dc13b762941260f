#include "measure/parameters.h"

#include <mpi.h>

namespace hetcoll {

namespace {

MPI_T_cvar_handle find(const char *name)
{
    int index = 0, count = 0;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) {
        return MPI_T_CVAR_HANDLE_NULL;
    }
    return handle;
}

} // namespace

struct Parameters::Impl {
    MPI_T_cvar_handle algorithm = MPI_T_CVAR_HANDLE_NULL, chunk_bytes = MPI_T_CVAR_HANDLE_NULL;
};

Parameters::Parameters() : impl_(std::make_unique<Impl>())
{
    int provided = 0;
    MPI_Query_thread(&provided); // Open MPI 4.1 takes a lower level as MPI's own
    MPI_T_init_thread(provided, &provided);
    impl_->algorithm = find("coll_hetcoll_algorithm");
    impl_->chunk_bytes = find("coll_hetcoll_chunk_bytes");
}

Parameters::~Parameters()
{
    for (MPI_T_cvar_handle *handle : {&impl_->algorithm, &impl_->chunk_bytes}) {
        if (*handle != MPI_T_CVAR_HANDLE_NULL) {
            MPI_T_cvar_handle_free(handle);
        }
    }
    MPI_T_finalize();
}

Status Parameters::set(const std::string &algorithm, std::size_t chunk_bytes) const
{
    const unsigned long chunk = chunk_bytes;
    if (impl_->algorithm == MPI_T_CVAR_HANDLE_NULL ||
        impl_->chunk_bytes == MPI_T_CVAR_HANDLE_NULL) {
        return error(Errc::kUnsupported, "hetcoll is not in this job, so no algorithm can be "
                                         "chosen: run with --mca coll hetcoll");
    }
    if (MPI_T_cvar_write(impl_->algorithm, algorithm.c_str()) != MPI_SUCCESS ||
        MPI_T_cvar_write(impl_->chunk_bytes, &chunk) != MPI_SUCCESS) {
        return error(Errc::kUnsupported,
                     "MPI_T does not let coll_hetcoll_algorithm be set to %s: is an older "
                     "hetcoll installed?",
                     algorithm.c_str());
    }
    return {};
}

} // namespace hetcoll
