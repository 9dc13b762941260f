# Which Open MPI the component is built for: compiler wrapper, internal headers, release, directories.

# Sets MPICC and OMPI_INFO, or fails.
AC_DEFUN([HETCOLL_FIND_MPICC],
[AS_CASE([$with_ompi],
    [yes], [hetcoll_path=$PATH],
    [hetcoll_path=$(cd "$with_ompi" 2>/dev/null && pwd || echo "$with_ompi")/bin])
 AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc], [], [$hetcoll_path])
 AC_PATH_PROGS([OMPI_INFO], [ompi_info], [], [$hetcoll_path])
 AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun], [], [$hetcoll_path])
 AS_IF([test -z "$MPICC"],
    [AC_MSG_ERROR([Open MPI's compiler wrapper mpicc not found in $hetcoll_path: install the Debian package libopenmpi-dev, or give the installation with --with-ompi=DIR])])
 AS_IF([$MPICC --showme:version 2>/dev/null | grep -q 'Open MPI'], [],
    [AC_MSG_ERROR([$MPICC is not Open MPI's: install the Debian package libopenmpi-dev, or give Open MPI's installation with --with-ompi=DIR])])
 AS_IF([test -z "$MPIRUN"],
    [AC_MSG_ERROR([mpirun, which the tests need, not found in $hetcoll_path: install the Debian package openmpi-bin])])
 AS_IF([test -z "$OMPI_INFO"],
    [AC_MSG_ERROR([ompi_info, which tells Open MPI's directories, not found in $hetcoll_path: install the Debian package openmpi-bin])])
 AS_IF([$OMPI_INFO --parsable -c 2>/dev/null | grep -q '^option:dlopen:no'],
    [AC_MSG_ERROR([the Open MPI of $OMPI_INFO was configured with --disable-dlopen, so it loads no component that was built outside of it: build hetcoll inside its source (docs/install.md), or give another Open MPI with --with-ompi=DIR])])])

# Sets hetcoll_devel where internal headers are not beside mpi.h: those that --with-ompi-headers names, or those that
# are made of the source that --with-ompi-source names, once.
AC_DEFUN([HETCOLL_OPEN_MPI_HEADERS],
[AC_ARG_WITH([ompi-headers],
    [AS_HELP_STRING([--with-ompi-headers=DIR], [Open MPI's internal headers, where they are not installed: what config/ompi_headers.sh has made])])
 AC_ARG_WITH([ompi-source],
    [AS_HELP_STRING([--with-ompi-source=DIR], [the source of the installed Open MPI, a folder or an archive: its internal headers are taken, after a configure of a few minutes])])
 hetcoll_devel=$with_ompi_headers
 AS_IF([test -n "$with_ompi_source"],
    [AS_CASE([$with_ompi_source], [/*], [hetcoll_source=$with_ompi_source], [hetcoll_source=$(pwd)/$with_ompi_source])
     hetcoll_devel=$(pwd)/ompi-headers
     AS_IF([test "$(cat ompi-headers.of 2>/dev/null)" != "$hetcoll_source" || test ! -d ompi-headers],
        [AC_MSG_NOTICE([configuring Open MPI's source for its headers, which takes a few minutes])
         hetcoll_made=$(sh "$srcdir/config/ompi_headers.sh" "$hetcoll_source" ompi-headers "${OMPI_INFO%/*}" 2>&1) ||
            AC_MSG_ERROR([$hetcoll_made])
         AC_MSG_NOTICE([$hetcoll_made])
         echo "$hetcoll_source" >ompi-headers.of])])
 AS_IF([test -n "$hetcoll_devel" && test ! -f "$hetcoll_devel/ompi/mca/coll/coll.h"],
    [AC_MSG_ERROR([--with-ompi-headers=$hetcoll_devel: there is no ompi/mca/coll/coll.h, so these are not Open MPI's internal headers: make them with config/ompi_headers.sh])])])

# Sets OMPI_CPPFLAGS (internal headers too), MPI_CPPFLAGS (mpi.h only), OMPI_LIBS, MPI_LIBS.
AC_DEFUN([HETCOLL_OPEN_MPI_FLAGS],
[OMPI_CPPFLAGS=
 MPI_CPPFLAGS=
 HETCOLL_OPEN_MPI_HEADERS
 for hetcoll_dir in $($MPICC --showme:incdirs); do
    MPI_CPPFLAGS="$MPI_CPPFLAGS -isystem $hetcoll_dir"
    # Installed internal headers must not come before those that were given.
    AS_IF([test -f "$hetcoll_dir/mpi.h" || test ! -f "$hetcoll_dir/ompi/mca/coll/coll.h"],
          [OMPI_CPPFLAGS="$OMPI_CPPFLAGS -isystem $hetcoll_dir"])
    for hetcoll_sub in "$hetcoll_dir" "$hetcoll_dir/openmpi"; do
        AS_IF([test -f "$hetcoll_sub/ompi/mca/coll/coll.h" && test -z "$hetcoll_devel"],
              [hetcoll_devel=$hetcoll_sub])
    done
 done
 AC_MSG_CHECKING([for Open MPI's internal headers])
 AS_IF([test -z "$hetcoll_devel"],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([ompi/mca/coll/coll.h not found next to the mpi.h of $MPICC. A component needs Open MPI's internal headers: install the Debian package libopenmpi-dev, or an Open MPI that was configured with --with-devel-headers; or give the source of this one with --with-ompi-source=DIR])])
 AC_MSG_RESULT([$hetcoll_devel])
 OMPI_CPPFLAGS="$OMPI_CPPFLAGS -isystem $hetcoll_devel"
 # Headers that --with-devel-headers forgets to install; a distribution that has them wins.
 OMPI_CPPFLAGS="$OMPI_CPPFLAGS -idirafter $(cd "$srcdir" && pwd)/config/compat"

 # From 5.0 on Open MPI's headers include PMIx's, which a distribution may keep in a directory of its own.
 AC_PATH_PROGS([hetcoll_pkg_config], [pkg-config pkgconf])
 AS_IF([test -n "$hetcoll_pkg_config" && $hetcoll_pkg_config --exists pmix],
    [OMPI_CPPFLAGS="$OMPI_CPPFLAGS $($hetcoll_pkg_config --cflags pmix | sed 's/-I */-isystem /g')"])

 MPI_LIBS=$($MPICC --showme:link)
 OMPI_LIBS=
 for hetcoll_dir in $($MPICC --showme:libdirs); do
    OMPI_LIBS="$OMPI_LIBS -L$hetcoll_dir"
 done
 for hetcoll_lib in $($MPICC --showme:libs); do
    OMPI_LIBS="$OMPI_LIBS -l$hetcoll_lib"
 done
 AS_CASE([$OMPI_LIBS], [*-lopen-pal*], [], [OMPI_LIBS="$OMPI_LIBS -lopen-pal"])
 AC_SUBST([OMPI_CPPFLAGS])
 AC_SUBST([MPI_CPPFLAGS])
 AC_SUBST([OMPI_LIBS])
 AC_SUBST([MPI_LIBS])])

# Sets hetcoll_ompi_release from mpi.h, and checks what our header shims assume.
AC_DEFUN([HETCOLL_OPEN_MPI_RELEASE],
[AC_LANG_PUSH([C])
 hetcoll_saved_flags=$CPPFLAGS
 CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS"
 AC_MSG_CHECKING([which release of Open MPI this is])
 AC_COMPUTE_INT([hetcoll_ompi_major], [OMPI_MAJOR_VERSION], [#include <mpi.h>], [hetcoll_ompi_major=0])
 AC_COMPUTE_INT([hetcoll_ompi_minor], [OMPI_MINOR_VERSION], [#include <mpi.h>], [hetcoll_ompi_minor=0])
 AC_COMPUTE_INT([hetcoll_ompi_patch], [OMPI_RELEASE_VERSION], [#include <mpi.h>], [hetcoll_ompi_patch=0])
 hetcoll_ompi_release=$hetcoll_ompi_major.$hetcoll_ompi_minor.$hetcoll_ompi_patch
 AC_MSG_RESULT([$hetcoll_ompi_release])
 AC_SUBST([OMPI_RELEASE], [$hetcoll_ompi_release])
 AS_IF([test "$hetcoll_ompi_major" -lt 4 || { test "$hetcoll_ompi_major" -eq 4 && test "$hetcoll_ompi_minor" -lt 1; }],
    [AC_MSG_ERROR([Open MPI $hetcoll_ompi_release is too old, hetcoll needs 4.1 or newer: the Debian package libopenmpi-dev has 4.1])])

 AC_MSG_CHECKING([whether Open MPI's threads are pthreads])
 AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
    #include "opal_config.h"
    #ifdef MCA_threads_base_include_HEADER
    #include MCA_threads_base_include_HEADER
    #ifndef OPAL_MCA_THREADS_PTHREADS_THREADS_PTHREADS_THREADS_H
    #error another threading package
    #endif
    #endif
    ]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([Open MPI in $hetcoll_devel uses a threading package other than pthreads, whose headers it does not install: build hetcoll inside its source tree (make ompi-tree, docs/install.md)])])

 AC_MSG_CHECKING([whether a component compiles against Open MPI's headers])
 CFLAGS="$CFLAGS $HETCOLL_CX16_FLAGS"
 AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
    #include "ompi_config.h"
    #include "mpi.h"
    #include "ompi/constants.h"
    #include "ompi/communicator/communicator.h"
    #include "ompi/mca/coll/coll.h"
    #include "ompi/mca/pml/pml.h"
    #include "ompi/op/op.h"
    ]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([Open MPI's internal headers in $hetcoll_devel do not compile, config.log says why: install the Debian package libopenmpi-dev, or an Open MPI that was configured with --with-devel-headers])])
 CPPFLAGS=$hetcoll_saved_flags
 AC_LANG_POP([C])])

# From 5.0 on, what processes publish about themselves goes straight to PMIx, whose library Open MPI
# brings or takes from elsewhere.
AC_DEFUN([HETCOLL_OPEN_MPI_PMIX],
[AS_IF([test "$hetcoll_ompi_major" -ge 5],
    [AC_LANG_PUSH([C])
     hetcoll_saved_libs=$LIBS
     LIBS="$OMPI_LIBS -lpmix $LIBS"
     AC_MSG_CHECKING([for the PMIx of Open MPI])
     AC_LINK_IFELSE([AC_LANG_SOURCE([[int PMIx_Initialized(void); int main(void) { return PMIx_Initialized(); }]])],
        [AC_MSG_RESULT([-lpmix])
         OMPI_LIBS="$OMPI_LIBS -lpmix"],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([libpmix, which this Open MPI uses, is not beside its libraries: give its directory with LDFLAGS=-LDIR (Debian package libpmix-dev)])])
     LIBS=$hetcoll_saved_libs
     AC_LANG_POP([C])])])

# Do the headers describe the libraries? Those of another configuration (--enable-debug, CUDA in 4.1) would be wrong in
# every call, and look right to the compiler. The component compares them at load too.
AC_DEFUN([HETCOLL_OPEN_MPI_LAYOUT],
[AC_LANG_PUSH([C])
 hetcoll_saved_flags=$CPPFLAGS hetcoll_saved_libs=$LIBS
 CPPFLAGS="$CPPFLAGS -I$srcdir $OMPI_CPPFLAGS"
 LIBS="-Wl,--no-as-needed $OMPI_LIBS -ldl $LIBS"
 for hetcoll_dir in $($MPICC --showme:libdirs); do
    LIBS="$LIBS -Wl,-rpath,$hetcoll_dir"
 done
 AC_MSG_CHECKING([whether Open MPI's headers describe its libraries])
 AC_RUN_IFELSE([AC_LANG_PROGRAM([[
    #define _GNU_SOURCE
    #include "ompi_config.h"
    #include <dlfcn.h>
    #include <stdio.h>
    #include "ompi/mca/coll/hetcoll/coll_hetcoll_layout.h"
    #define SAME(type) + same(#type, #type "_class", sizeof(type))
    static int same(const char *name, const char *symbol, size_t ours)
    {
        const opal_class_t *theirs = dlsym(RTLD_DEFAULT, symbol);
        if (NULL == theirs || ours == theirs->cls_sizeof) return 0;
        fprintf(stderr, "%s has %zu bytes in the headers and %zu in the library\n", name, ours, theirs->cls_sizeof);
        return 1;
    }
    ]], [[
    if (NULL == dlsym(RTLD_DEFAULT, "ompi_communicator_t_class")) {
        fprintf(stderr, "ompi_communicator_t_class is in no library\n");
        return 1;
    }
    return 0 != (0 HETCOLL_CLASSES(SAME));
    ]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([Open MPI's internal headers in $hetcoll_devel are not of the libraries that $MPICC links: $(./conftest$EXEEXT 2>&1 | head -n 1). Take the headers of this very build: --with-ompi-source=DIR configures its source as it was])],
    [AC_MSG_RESULT([not tried, as this build is for another machine])])
 CPPFLAGS=$hetcoll_saved_flags LIBS=$hetcoll_saved_libs
 AC_LANG_POP([C])])

# Sets componentdir.
AC_DEFUN([HETCOLL_OPEN_MPI_DIRS],
[AC_ARG_WITH([componentdir],
    [AS_HELP_STRING([--with-componentdir=DIR], [where the component goes; the default is Open MPI's own directory (ompi_info --path pkglibdir)])],
    [], [with_componentdir=yes])
 OMPI_COMPONENTS=$($OMPI_INFO --path pkglibdir | sed 's/^[[^:]]*: *//')
 AS_IF([test -z "$OMPI_COMPONENTS"],
    [AC_MSG_ERROR([$OMPI_INFO --path pkglibdir does not tell where Open MPI's components are: reinstall the Debian package openmpi-bin, or give an Open MPI with --with-ompi=DIR])])
 AS_CASE([$with_componentdir],
    [yes], [componentdir=$OMPI_COMPONENTS],
    [/*], [componentdir=$with_componentdir],
    [AC_MSG_ERROR([--with-componentdir=$with_componentdir: give the whole path of a directory, from /])])
 AC_SUBST([componentdir])
 AC_SUBST([OMPI_COMPONENTS])
 HETCOLL_SUMMARY_LINE([component goes to], [$componentdir])])

# Without Open MPI there is no component: the core, its unit tests, and what make check-gpu needs.
AC_DEFUN([HETCOLL_OPEN_MPI],
[AC_ARG_WITH([ompi],
    [AS_HELP_STRING([--with-ompi=DIR], [Open MPI's installation; the default is the one whose mpicc is on PATH. --without-ompi: no component, only what make check-gpu needs])],
    [], [with_ompi=yes])
 AS_IF([test "$with_ompi" = no],
    [HETCOLL_SUMMARY_LINE([Open MPI], [not used, so there is no component])],
    [HETCOLL_FIND_MPICC
     HETCOLL_OPEN_MPI_FLAGS
     HETCOLL_OPEN_MPI_RELEASE
     HETCOLL_OPEN_MPI_PMIX
     HETCOLL_OPEN_MPI_LAYOUT
     HETCOLL_SUMMARY_LINE([Open MPI], [$hetcoll_ompi_release ($MPICC)])
     HETCOLL_OPEN_MPI_DIRS])
 AM_CONDITIONAL([WITH_OMPI], [test "$with_ompi" != no])])
