# hetcoll in an Open MPI source tree: run by Open MPI's configure. `make ompi-tree` lays it there.
# Everything set here is named coll_hetcoll_*, so that no other part of Open MPI sees a change.

# Always a DSO: linked into libmpi it would bring the C++ library along.
AC_DEFUN([MCA_ompi_coll_hetcoll_COMPILE_MODE],
[AC_MSG_CHECKING([for MCA component $1:$2:$3 compile mode])
 $4="dso"
 # Open MPI 5.0 takes this answer for the name of the variable that has it.
 dso="dso"
 AC_MSG_RESULT([$$4])])

# Sets coll_hetcoll_NVCC and coll_hetcoll_CUDA_CPPFLAGS if $1 holds a toolkit: its own layout, or the
# one of NVIDIA's Python packages.
AC_DEFUN([MCA_ompi_coll_hetcoll_TRY_CUDA],
[for coll_hetcoll_dir in "$1" "$1"/nvidia/cu[[0-9]]* "$1"/lib/python3*/site-packages/nvidia/cu[[0-9]]*; do
    AS_IF([test -z "$coll_hetcoll_NVCC" && test -x "$coll_hetcoll_dir/bin/nvcc" && test -f "$coll_hetcoll_dir/include/cuda.h"],
        [coll_hetcoll_NVCC=$coll_hetcoll_dir/bin/nvcc
         AS_IF([test -f "$coll_hetcoll_dir/include/nvtx3/nvToolsExt.h"], [coll_hetcoll_WITH_NVTX=1])
         coll_hetcoll_CUDA_CPPFLAGS="-isystem $coll_hetcoll_dir/include"])
 done])

AC_DEFUN([MCA_ompi_coll_hetcoll_FIND_CUDA],
[AC_ARG_WITH([hetcoll-cuda],
    [AS_HELP_STRING([--with-hetcoll-cuda=DIR],
        [CUDA toolkit to build coll/hetcoll with; the default is CUDA_HOME, then nvcc on PATH, then /usr/local/cuda])])
 AC_ARG_WITH([hetcoll-cuda-arch],
    [AS_HELP_STRING([--with-hetcoll-cuda-arch=LIST],
        [architectures of the kernels of coll/hetcoll, as 80,90; the default is all from 60 up])])
 coll_hetcoll_NVCC=
 coll_hetcoll_WITH_NVTX=0
 coll_hetcoll_CUDA_CPPFLAGS=
 coll_hetcoll_NVCC_ARCH_FLAGS=
 AS_CASE([$with_hetcoll_cuda],
    [no], [],
    [yes|""],
        [AS_IF([test -n "$CUDA_HOME"], [MCA_ompi_coll_hetcoll_TRY_CUDA([$CUDA_HOME])])
         coll_hetcoll_nvcc=$(command -v nvcc)
         AS_IF([test -n "$coll_hetcoll_nvcc"],
            [coll_hetcoll_nvcc=$(readlink -f "$coll_hetcoll_nvcc")
             MCA_ompi_coll_hetcoll_TRY_CUDA([${coll_hetcoll_nvcc%/bin/nvcc}])])
         MCA_ompi_coll_hetcoll_TRY_CUDA([/usr/local/cuda])],
    [MCA_ompi_coll_hetcoll_TRY_CUDA([$with_hetcoll_cuda])
     AS_IF([test -z "$coll_hetcoll_NVCC"],
        [AC_MSG_ERROR([--with-hetcoll-cuda=$with_hetcoll_cuda: no bin/nvcc and include/cuda.h there])])])
 AC_MSG_CHECKING([for the CUDA toolkit of coll/hetcoll])
 AC_MSG_RESULT([${coll_hetcoll_NVCC:-none, so the component is not built}])
 AS_IF([test -n "$coll_hetcoll_NVCC"],
    [coll_hetcoll_NVCC_ARCH_FLAGS=$(sh "$srcdir/ompi/mca/coll/hetcoll/config/cuda_arch_flags.sh" "$coll_hetcoll_NVCC" "$with_hetcoll_cuda_arch") ||
        AC_MSG_ERROR([coll/hetcoll: no flags for the kernels, the reason is above])])
 AC_SUBST([coll_hetcoll_NVCC])
 AC_SUBST([coll_hetcoll_WITH_NVTX])
 AC_SUBST([coll_hetcoll_CUDA_CPPFLAGS])
 AC_SUBST([coll_hetcoll_NVCC_ARCH_FLAGS])])

AC_DEFUN([MCA_ompi_coll_hetcoll_CHECK_CXX],
[coll_hetcoll_cxx=no
 AS_IF([test -n "$CXX" && test "$CXX" != no],
    [AC_LANG_PUSH([C++])
     AC_MSG_CHECKING([whether $CXX knows C++20, for coll/hetcoll])
     coll_hetcoll_saved_flags=$CXXFLAGS
     CXXFLAGS="$CXXFLAGS -std=c++20"
     AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
        #include <concepts>
        #include <span>
        template <std::integral T> constexpr T twice(T v) { return v + v; }
        int first(std::span<const int> s) { return s.front() + twice(2); }
        ]])],
        [coll_hetcoll_cxx=yes])
     AC_MSG_RESULT([$coll_hetcoll_cxx])
     CXXFLAGS=$coll_hetcoll_saved_flags
     AC_LANG_POP([C++])])])

# The hwloc of the system. Open MPI's own copy is another one, with other names, and need not be built
# yet; without hwloc the component knows fewer links.
AC_DEFUN([MCA_ompi_coll_hetcoll_CHECK_HWLOC],
[coll_hetcoll_HWLOC_CPPFLAGS=-DHETCOLL_WITHOUT_HWLOC
 coll_hetcoll_HWLOC_LIBS=
 coll_hetcoll_saved_libs=$LIBS
 LIBS="-lhwloc $LIBS"
 AC_MSG_CHECKING([for an installed hwloc 2.1 or later, for coll/hetcoll])
 AC_LINK_IFELSE([AC_LANG_PROGRAM([[
    #include <hwloc.h>
    #if HWLOC_API_VERSION < 0x00020100
    #error too old
    #endif
    ]], [[return hwloc_topology_set_components(0, 0, 0);]])],
    [coll_hetcoll_HWLOC_CPPFLAGS=
     coll_hetcoll_HWLOC_LIBS=-lhwloc
     AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no, so it knows fewer links])])
 LIBS=$coll_hetcoll_saved_libs
 AC_SUBST([coll_hetcoll_HWLOC_CPPFLAGS])
 AC_SUBST([coll_hetcoll_HWLOC_LIBS])])

# Aggregators need the headers of OpenSSL; its library is opened at run time.
AC_DEFUN([MCA_ompi_coll_hetcoll_CHECK_OPENSSL],
[coll_hetcoll_WITH_OPENSSL=0
 AC_MSG_CHECKING([for headers of OpenSSL 1.1.1 or later, for coll/hetcoll])
 AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
    #include <openssl/ssl.h>
    #if OPENSSL_VERSION_NUMBER < 0x10101000L
    #error too old
    #endif
    ]], [[]])],
    [coll_hetcoll_WITH_OPENSSL=1
     AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no, so it has no aggregators])])
 AC_SUBST([coll_hetcoll_WITH_OPENSSL])])

# RDMA, to them and by adapters of a node, needs the headers of UCX.
AC_DEFUN([MCA_ompi_coll_hetcoll_CHECK_UCX],
[coll_hetcoll_WITH_UCX=0
 AC_MSG_CHECKING([for headers of UCX 1.11 or later, for coll/hetcoll])
 AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
    #include <ucp/api/ucp.h>
    #include <ucs/async/async_fwd.h>
    #include <uct/api/uct.h>
    #if UCP_API_VERSION < UCP_VERSION(1, 11)
    #error too old
    #endif
    ]], [[]])],
    [coll_hetcoll_WITH_UCX=1
     AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no, so it has no RDMA])])
 AC_SUBST([coll_hetcoll_WITH_UCX])])

# MCA_ompi_coll_hetcoll_CONFIG([action if it can compile], [action if not])
AC_DEFUN([MCA_ompi_coll_hetcoll_CONFIG],
[AC_REQUIRE([AM_PROG_AS])
 AC_CONFIG_FILES([ompi/mca/coll/hetcoll/Makefile])
 AC_CONFIG_FILES([ompi/mca/coll/hetcoll/hetcoll_config.h])
 OPAL_VAR_SCOPE_PUSH([coll_hetcoll_dir coll_hetcoll_nvcc coll_hetcoll_cxx coll_hetcoll_saved_flags coll_hetcoll_saved_libs])
 MCA_ompi_coll_hetcoll_FIND_CUDA
 MCA_ompi_coll_hetcoll_CHECK_CXX
 MCA_ompi_coll_hetcoll_CHECK_HWLOC
 MCA_ompi_coll_hetcoll_CHECK_OPENSSL
 MCA_ompi_coll_hetcoll_CHECK_UCX
 # The library with Open MPI's internal symbols is libmpi up to 5.0, libopen_mpi after.
 AS_IF([test -f "$srcdir/ompi/mpi/c/Makefile.am" && grep -q libopen_mpi "$srcdir/ompi/Makefile.am"],
    [coll_hetcoll_LIBMPI="\$(top_builddir)/ompi/libopen_mpi.la"],
    [coll_hetcoll_LIBMPI="\$(top_builddir)/ompi/lib${OMPI_LIBMPI_NAME}.la"])
 AC_SUBST([coll_hetcoll_LIBMPI])
 AS_IF([test -n "$coll_hetcoll_NVCC" && test "$coll_hetcoll_cxx" = yes], [$1], [$2])
 OPAL_VAR_SCOPE_POP])
