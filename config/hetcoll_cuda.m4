# The CUDA toolkit: nvcc, cuda.h and the kernels' architectures. No CUDA library is ever linked.

# HETCOLL_CUDA_TRY(DIR): if DIR holds a toolkit, sets NVCC and CUDA_CPPFLAGS. DIR is a toolkit, or a
# Python environment with NVIDIA's packages, whose parts lie in site-packages/nvidia/cu13 (CUDA 13)
# or in one folder a package (CUDA 12).
AC_DEFUN([HETCOLL_CUDA_TRY],
[for hetcoll_root in "$1" "$1"/nvidia/cu[[0-9]]* "$1"/cu[[0-9]]* \
                     "$1"/lib/python3*/site-packages/nvidia/cu[[0-9]]* \
                     "$1"/nvidia/cuda_nvcc "$1"/lib/python3*/site-packages/nvidia/cuda_nvcc; do
    AS_IF([test -z "$NVCC" && test -x "$hetcoll_root/bin/nvcc"],
       [for hetcoll_dir in "$hetcoll_root/include" "$hetcoll_root/../cuda_runtime/include"; do
            AS_IF([test -z "$NVCC" && test -f "$hetcoll_dir/cuda.h"],
               [NVCC=$hetcoll_root/bin/nvcc
                CUDA_CPPFLAGS="-isystem $hetcoll_dir"])
        done
        AS_IF([test -z "$NVCC"], [hetcoll_headless=$hetcoll_root])])
 done])

AC_DEFUN([HETCOLL_CUDA_FIND],
[NVCC=
 CUDA_CPPFLAGS=
 hetcoll_headless=
 AS_CASE([$with_cuda],
    [yes], [hetcoll_nvcc_on_path=$(command -v nvcc)
            AS_IF([test -n "$CUDA_HOME"], [HETCOLL_CUDA_TRY([$CUDA_HOME])])
            AS_IF([test -z "$NVCC" && test -n "$hetcoll_nvcc_on_path"],
                  [hetcoll_nvcc_on_path=$(readlink -f "$hetcoll_nvcc_on_path")
                   HETCOLL_CUDA_TRY([${hetcoll_nvcc_on_path%/bin/nvcc}])
                   # Debian's nvidia-cuda-toolkit: headers in /usr/include
                   AS_IF([test -z "$NVCC" && test -f /usr/include/cuda.h], [NVCC=$hetcoll_nvcc_on_path])])
            AS_IF([test -z "$NVCC"], [HETCOLL_CUDA_TRY([/usr/local/cuda])])
            hetcoll_where="in \$CUDA_HOME (${CUDA_HOME:-not set}), on PATH, or in /usr/local/cuda"],
    [hetcoll_cuda=$(cd "$with_cuda" 2>/dev/null && pwd || echo "$with_cuda")
     HETCOLL_CUDA_TRY([$hetcoll_cuda])
     hetcoll_where="in $hetcoll_cuda"])
 AS_IF([test -z "$NVCC" && test -n "$hetcoll_headless"],
    [AC_MSG_ERROR([nvcc is in $hetcoll_headless/bin, but cuda.h is not beside it: install the toolkit's headers (Python package nvidia-cuda-runtime or nvidia-cuda-runtime-cu12), or build with --without-cuda])])
 AS_IF([test -z "$NVCC"],
    [AC_MSG_ERROR([no CUDA toolkit (bin/nvcc and include/cuda.h) $hetcoll_where: install NVIDIA's toolkit, or let ./bootstrap.sh fetch the nvidia-cuda-* Python packages, and give it with --with-cuda=DIR; or build with --without-cuda])])])

# nvcc must compile for a GPU and find its own headers.
AC_DEFUN([HETCOLL_CUDA_CHECK],
[AC_MSG_CHECKING([whether $NVCC compiles a kernel])
 cat > conftest.cu <<'END'
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void probe(__half *a, __nv_bfloat16 *b) { *a = __hadd(*a, *a); *b = __float2bfloat16(1.0f); }
END
 AS_IF([$NVCC $NVCCFLAGS -ccbin "${CXX%% *}" -std=c++17 -cubin -arch=sm_80 $CUDA_CPPFLAGS -o conftest.cubin conftest.cu >conftest.err 2>&1 && test -s conftest.cubin],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     cat conftest.err >&AS_MESSAGE_LOG_FD
     AC_MSG_ERROR([$NVCC does not compile a kernel: $(grep -m1 -iE 'error|not found|No such' conftest.err || head -n 1 conftest.err). Its parts are the Python packages nvidia-cuda-nvcc, nvidia-nvvm, nvidia-cuda-crt, nvidia-cuda-runtime and nvidia-cuda-cccl, or NVIDIA's whole toolkit])])
 rm -f conftest.cu conftest.cubin conftest.err
 hetcoll_cuda_release=$($NVCC --version | sed -n 's/.*release \([[0-9.]]*\).*/\1/p')])

# Sets HETCOLL_WITH_NVTX. The headers load a profiler's library by themselves: nothing is linked.
AC_DEFUN([HETCOLL_NVTX],
[AC_ARG_WITH([nvtx],
    [AS_HELP_STRING([--without-nvtx], [no ranges for NVIDIA's profilers; the default is where the toolkit has nvtx3/nvToolsExt.h])])
 HETCOLL_WITH_NVTX=0
 AS_IF([test "$HETCOLL_WITH_CUDA" = 1 && test "x$with_nvtx" != xno],
    [AC_LANG_PUSH([C++])
     hetcoll_saved_flags=$CPPFLAGS
     CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
     AC_MSG_CHECKING([for nvtx3/nvToolsExt.h])
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <nvtx3/nvToolsExt.h>]], [[nvtxDomainCreateA("probe");]])],
        [HETCOLL_WITH_NVTX=1
         AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AS_IF([test "x$with_nvtx" = xyes],
            [AC_MSG_ERROR([--with-nvtx: nvtx3/nvToolsExt.h is not in the CUDA toolkit: its Python package is nvidia-nvtx])])])
     CPPFLAGS=$hetcoll_saved_flags
     AC_LANG_POP([C++])
     AS_IF([test "$HETCOLL_WITH_NVTX" = 1],
        [HETCOLL_SUMMARY_LINE([NVTX], [yes])],
        [HETCOLL_SUMMARY_LINE([NVTX], [no (nvtx3/nvToolsExt.h is not in the toolkit): no ranges for profilers])])])
 AC_SUBST([HETCOLL_WITH_NVTX])])

AC_DEFUN([HETCOLL_CUDA],
[AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR], [CUDA toolkit, or a Python environment with the nvidia-cuda-* packages; the default is CUDA_HOME, then nvcc on PATH, then /usr/local/cuda])],
    [], [with_cuda=yes])
 AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST], [architectures of the kernels, as 80,90; the default is all that nvcc supports from 60 up])],
    [], [with_cuda_arch=])
 AC_ARG_VAR([CUDA_HOME], [where the CUDA toolkit is])
 AC_ARG_VAR([NVCCFLAGS], [flags for nvcc])
 HETCOLL_WITH_CUDA=0
 NVCC_ARCH_FLAGS=
 AS_IF([test "x$with_cuda" = xno],
    [NVCC=
     CUDA_CPPFLAGS=
     HETCOLL_SUMMARY_LINE([CUDA], [no (--without-cuda): the component leaves everything to others])],
    [HETCOLL_CUDA_FIND
     HETCOLL_CUDA_CHECK
     HETCOLL_WITH_CUDA=1
     AS_IF([test -f "$srcdir/config/cuda_arch_flags.sh"],
        [NVCC_ARCH_FLAGS=$(sh "$srcdir/config/cuda_arch_flags.sh" "$NVCC" "$with_cuda_arch" 2>conftest.err) ||
            AC_MSG_ERROR([$(cat conftest.err)])
         rm -f conftest.err])
     HETCOLL_SUMMARY_LINE([CUDA], [$hetcoll_cuda_release ($NVCC)])])
 AC_SUBST([NVCC])
 AC_SUBST([NVCC_ARCH_FLAGS])
 AC_SUBST([CUDA_CPPFLAGS])
 AC_SUBST([CUDA_MAJOR], [${hetcoll_cuda_release%%.*}])
 AC_SUBST([HETCOLL_WITH_CUDA])
 AM_CONDITIONAL([WITH_CUDA], [test "$HETCOLL_WITH_CUDA" = 1])])
