# What packages and releases need: pages of the manual, the service's folder, flags for pkg-config, an archive that is
# the same byte for byte wherever it is made.
AC_DEFUN([HETCOLL_PACKAGING],
[AC_CHECK_PROGS([HELP2MAN], [help2man])
 AS_IF([test "$cross_compiling" = yes], [HELP2MAN=]) # it runs the programs
 AM_CONDITIONAL([HAVE_HELP2MAN], [test -n "$HELP2MAN"])
 AS_IF([test -n "$HELP2MAN"],
    [HETCOLL_SUMMARY_LINE([help2man], [found, the tools get manual pages])],
    [HETCOLL_SUMMARY_LINE([help2man], [missing, the tools get no manual pages: install the Debian package help2man])])

 AC_ARG_WITH([systemdsystemunitdir],
    [AS_HELP_STRING([--with-systemdsystemunitdir=DIR], [where hetcoll_aggregator.service goes, no: it is not installed; the default is PREFIX/lib/systemd/system])],
    [], [with_systemdsystemunitdir=yes])
 AS_CASE([$with_systemdsystemunitdir],
    [yes], [systemdsystemunitdir='${prefix}/lib/systemd/system'],
    [systemdsystemunitdir=$with_systemdsystemunitdir])
 AC_SUBST([systemdsystemunitdir])
 AM_CONDITIONAL([WITH_SYSTEMD_UNIT], [test "$with_systemdsystemunitdir" != no])

 # The headers that are installed include mpi.h. If pkg-config knows the Open MPI that this build is for, our files
 # refer to its own, else they say what its compiler wrapper says.
 PC_MPI_REQUIRES= PC_MPI_CFLAGS= PC_MPI_LIBS=
 AS_IF([test "$with_ompi" != no],
    [AS_IF([test -n "$hetcoll_pkg_config" && test "$($hetcoll_pkg_config --modversion ompi-c 2>/dev/null)" = "$hetcoll_ompi_release"],
        [PC_MPI_REQUIRES=ompi-c],
        [PC_MPI_CFLAGS=$($MPICC --showme:compile)
         PC_MPI_LIBS=$($MPICC --showme:link)])])
 AC_SUBST([PC_MPI_REQUIRES])
 AC_SUBST([PC_MPI_CFLAGS])
 AC_SUBST([PC_MPI_LIBS])

 # libtool stops half-way at a blank, in links and installations.
 for hetcoll_dir in "$prefix" "$exec_prefix" "$bindir" "$libdir" "$includedir" "$datadir" "$componentdir"; do
    AS_CASE([$hetcoll_dir],
        [*[[[:space:]]]*], [AC_MSG_ERROR(['$hetcoll_dir' has a blank, and libtool installs nothing below such a folder: take another one])])
 done

 # make dist: names sorted, no owners, the modes of any umask, and one time for all.
 am__tar='LC_ALL=C tar --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go-w,a+rX --mtime=@$(release_time) -chf - "$$tardir"'])
