# The compilers, their flags, the sanitizers, and the summary at the end of configure.

# HETCOLL_SUMMARY_BEGIN: what the other macros find is collected by HETCOLL_SUMMARY_LINE.
AC_DEFUN([HETCOLL_SUMMARY_BEGIN], [hetcoll_summary=])

# HETCOLL_SUMMARY_LINE(WHAT, FOUND)
AC_DEFUN([HETCOLL_SUMMARY_LINE],
[hetcoll_summary="$hetcoll_summary
  $(printf '%-18s' "$1:") $2"])

AC_DEFUN([HETCOLL_SUMMARY_PRINT],
[AC_MSG_NOTICE([hetcoll $PACKAGE_VERSION is configured:
$hetcoll_summary
])])

# HETCOLL_TRY_FLAG(FLAG, VARIABLE): appends FLAG to VARIABLE if the C++ compiler takes it.
AC_DEFUN([HETCOLL_TRY_FLAG],
[hetcoll_saved_flags=$CXXFLAGS
 CXXFLAGS="$CXXFLAGS -Werror $1"
 AC_MSG_CHECKING([whether $CXX takes $1])
 AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
    [AC_MSG_RESULT([yes])
     $2="$$2 $1"],
    [AC_MSG_RESULT([no])])
 CXXFLAGS=$hetcoll_saved_flags])

# -mcx16: Open MPI's lists use a 16-byte compare and swap on x86-64.
AC_DEFUN([HETCOLL_CX16],
[AC_LANG_PUSH([C])
 AC_MSG_CHECKING([what a 16-byte compare and swap needs])
 hetcoll_saved_flags=$CFLAGS
 HETCOLL_CX16_FLAGS=none
 for hetcoll_flag in "" -mcx16; do
    CFLAGS="$hetcoll_saved_flags $hetcoll_flag"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [[
#if defined(__x86_64__)
        static __int128 x;
        return __sync_bool_compare_and_swap(&x, 0, 1) ? 0 : 1;
#endif
        ]])],
        [HETCOLL_CX16_FLAGS=$hetcoll_flag
         break])
 done
 CFLAGS=$hetcoll_saved_flags
 AS_IF([test "x$HETCOLL_CX16_FLAGS" = xnone],
    [AC_MSG_RESULT([not to be had])
     AC_MSG_ERROR([$CC cannot link a 16-byte compare and swap, even with -mcx16, and Open MPI's headers need it: set CC to gcc (Debian package gcc)])])
 AC_MSG_RESULT([${HETCOLL_CX16_FLAGS:-nothing}])
 AC_SUBST([HETCOLL_CX16_FLAGS])
 AC_LANG_POP([C])])

AC_DEFUN([HETCOLL_COMPILERS],
[AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])],
    [], [enable_werror=no])
 AC_LANG_PUSH([C++])
 AC_MSG_CHECKING([whether $CXX knows C++20])
 hetcoll_saved_flags=$CXXFLAGS
 CXXFLAGS="$CXXFLAGS -std=c++20"
 AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
    #include <concepts>
    #include <span>
    struct Point { int x = 0, y = 0; };
    template <std::integral T> constexpr T twice(T v) { return v + v; }
    int first(std::span<const int> s) { return s.front() + Point{.x = 1, .y = twice(2)}.y; }
    ]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$CXX does not compile C++20: install the Debian package g++ (10 or newer), or set CXX])])
 CXXFLAGS=$hetcoll_saved_flags
 HETCOLL_WARNINGS="-Wall -Wextra -Wshadow"
 AS_IF([test "x$enable_werror" = xyes], [HETCOLL_WARNINGS="$HETCOLL_WARNINGS -Werror"])
 # The same bits from g++ and nvcc: no fused multiply-add that the source does not ask for.
 HETCOLL_TRY_FLAG([-ffp-contract=off], [HETCOLL_CODE_FLAGS])
 HETCOLL_TRY_FLAG([-fvisibility=hidden], [HETCOLL_CODE_FLAGS])
 # So that the linker can leave out of the component what nothing there calls.
 HETCOLL_TRY_FLAG([-ffunction-sections], [HETCOLL_CODE_FLAGS])
 # GCC looks for garbage from 512 MB on, which few sources need, not from 256 MB on: a tenth less time for the largest.
 HETCOLL_TRY_FLAG([--param=ggc-min-heapsize=262144], [HETCOLL_CODE_FLAGS])
 AC_SUBST([HETCOLL_WARNINGS])
 AC_SUBST([HETCOLL_CODE_FLAGS])
 # Clang ends with an error where flags differ from the header's; GCC leaves it aside.
 AC_PREPROC_IFELSE([AC_LANG_SOURCE([[
    #if !defined(__GNUC__) || defined(__clang__)
    #error
    #endif
    ]])], [hetcoll_precompiled=yes], [hetcoll_precompiled=no])
 AM_CONDITIONAL([PRECOMPILED_HEADERS], [test "$hetcoll_precompiled" = yes])
 AC_LANG_POP([C++])
 HETCOLL_CX16
 HETCOLL_SUMMARY_LINE([compilers], [$CC, $CXX, warnings are errors: $enable_werror])])

AC_DEFUN([HETCOLL_CHECK_SANITIZER],
[AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer=LIST], [build with -fsanitize=LIST: address,undefined or thread])],
    [], [enable_sanitizer=no])
 HETCOLL_SANITIZER_FLAGS=
 HETCOLL_SANITIZER=
 HETCOLL_SANITIZED_DSO=
 AS_CASE([$enable_sanitizer],
    [no], [],
    [yes], [AC_MSG_ERROR([--enable-sanitizer needs a list: address,undefined or thread])],
    [AC_LANG_PUSH([C++])
     HETCOLL_SANITIZER_FLAGS="-fsanitize=$enable_sanitizer -fno-omit-frame-pointer -fno-sanitize-recover=all"
     hetcoll_saved_flags=$CXXFLAGS
     CXXFLAGS="$CXXFLAGS $HETCOLL_SANITIZER_FLAGS"
     AC_MSG_CHECKING([whether $CXX links with -fsanitize=$enable_sanitizer])
     AC_LINK_IFELSE([AC_LANG_PROGRAM()],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([$CXX does not link with -fsanitize=$enable_sanitizer: the libraries come with the Debian package libgcc-$($CXX -dumpversion)-dev])])
     CXXFLAGS=$hetcoll_saved_flags
     AC_LANG_POP([C++])
     HETCOLL_SANITIZER=$enable_sanitizer
     # Stays loaded, so that a leak's stack can be named after Open MPI closed the component.
     HETCOLL_SANITIZED_DSO="-Wl,-z,nodelete"
     # libtool links C++ libraries with -nostdlib, and the sanitizer's library comes with the program
     # then: the Makefile's -z defs must not ask for it.
     LDFLAGS="$LDFLAGS -Wl,-z,undefs"
     HETCOLL_SUMMARY_LINE([sanitizer], [$enable_sanitizer])])
 AC_SUBST([HETCOLL_SANITIZER_FLAGS])
 AC_SUBST([HETCOLL_SANITIZER])
 AC_SUBST([HETCOLL_SANITIZED_DSO])
])

# GoogleTest, Google Benchmark, CLI11, json, hwloc: what is missing is said in the summary, with its package.
AC_DEFUN([HETCOLL_TEST_PACKAGES],
[AC_LANG_PUSH([C++])
 hetcoll_saved_flags=$CXXFLAGS
 hetcoll_saved_libs=$LIBS
 CXXFLAGS="$CXXFLAGS -std=c++20 -pthread"

 LIBS="-lgtest_main -lgtest"
 AC_MSG_CHECKING([for GoogleTest])
 AC_LINK_IFELSE([AC_LANG_SOURCE([[
    #include <gtest/gtest.h>
    TEST(Configure, Links) { EXPECT_TRUE(true); }
    ]])],
    [hetcoll_have_gtest=yes
     HETCOLL_SUMMARY_LINE([GoogleTest], [found, unit tests are built])],
    [hetcoll_have_gtest=no
     HETCOLL_SUMMARY_LINE([GoogleTest], [missing, unit tests are skipped: install the Debian package libgtest-dev])])
 AC_MSG_RESULT([$hetcoll_have_gtest])

 LIBS="-lbenchmark"
 AC_MSG_CHECKING([for Google Benchmark])
 AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <benchmark/benchmark.h>]],
                                 [[return benchmark::ReportUnrecognizedArguments(0, nullptr);]])],
    [hetcoll_have_benchmark=yes
     HETCOLL_SUMMARY_LINE([Google Benchmark], [found, for make micro-benchmarks])],
    [hetcoll_have_benchmark=no
     HETCOLL_SUMMARY_LINE([Google Benchmark], [missing, micro-benchmarks are skipped: install the Debian package libbenchmark-dev])])
 AC_MSG_RESULT([$hetcoll_have_benchmark])

 LIBS=
 AC_MSG_CHECKING([for CLI11 and nlohmann-json])
 AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
    #include <CLI/CLI.hpp>
    #include <nlohmann/json.hpp>
    ]])],
    [hetcoll_have_bench_headers=yes
     AS_IF([test "$HETCOLL_WITH_CUDA" = 1],
        [HETCOLL_SUMMARY_LINE([CLI11, json], [found, the tools are built])],
        [HETCOLL_SUMMARY_LINE([CLI11, json], [found, the tools are not built without CUDA])])],
    [hetcoll_have_bench_headers=no
     HETCOLL_SUMMARY_LINE([CLI11, json], [missing, the tools are skipped: install the Debian packages libcli11-dev and nlohmann-json3-dev])])
 AC_MSG_RESULT([$hetcoll_have_bench_headers])

 LIBS=-lhwloc
 AC_MSG_CHECKING([for hwloc])
 AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hwloc.h>]], [[return hwloc_get_api_version() == 0;]])],
    [AC_MSG_RESULT([yes])
     HWLOC_LIBS=-lhwloc
     HETCOLL_SUMMARY_LINE([hwloc], [found])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([hwloc is missing, it tells how GPUs and network cards are connected: install the Debian package libhwloc-dev])])
 AC_SUBST([HWLOC_LIBS])

 CXXFLAGS=$hetcoll_saved_flags
 LIBS=$hetcoll_saved_libs
 AC_LANG_POP([C++])
 AM_CONDITIONAL([HAVE_GTEST], [test "$hetcoll_have_gtest" = yes])
 AM_CONDITIONAL([HAVE_BENCH_HEADERS], [test "$hetcoll_have_bench_headers" = yes])
 AM_CONDITIONAL([HAVE_BENCHMARK], [test "$hetcoll_have_benchmark" = yes])])
