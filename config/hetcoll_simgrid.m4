# SimGrid, for hetcoll_sim. Optional: without it the tool is left out. Also with ThreadSanitizer, which
# knows neither the fences in its headers nor the stacks that it changes between.
AC_DEFUN([HETCOLL_SIMGRID],
[AC_LANG_PUSH([C++])
 hetcoll_saved_flags=$CXXFLAGS
 hetcoll_saved_libs=$LIBS
 CXXFLAGS="$CXXFLAGS -std=c++20"
 LIBS="-lsimgrid"
 AC_MSG_CHECKING([for SimGrid, 3.32 to 4 (run: 3.32, 4.0, 4.1)])
 AC_LINK_IFELSE([AC_LANG_PROGRAM([[
    #include <simgrid/s4u.hpp>
    #include <simgrid/version.h>
    #if SIMGRID_VERSION_MAJOR < 3 || SIMGRID_VERSION_MAJOR > 4 || (SIMGRID_VERSION_MAJOR == 3 && SIMGRID_VERSION_MINOR < 32)
    #error another interface
    #endif
    ]], [[simgrid::s4u::Engine::get_clock();]])],
    [hetcoll_have_simgrid=yes], [hetcoll_have_simgrid=no])
 AC_MSG_RESULT([$hetcoll_have_simgrid])
 SIMGRID_LIBS=
 AS_CASE([,$enable_sanitizer,], [*,thread,*], [hetcoll_have_simgrid=no])
 AS_IF([test "$hetcoll_have_simgrid" = yes],
     [SIMGRID_LIBS=-lsimgrid
      HETCOLL_SUMMARY_LINE([SimGrid], [found, hetcoll_sim is built])],
     [HETCOLL_SUMMARY_LINE([SimGrid], [missing or not with this sanitizer, hetcoll_sim is left out: the Debian package is libsimgrid-dev])])
 CXXFLAGS=$hetcoll_saved_flags
 LIBS=$hetcoll_saved_libs
 AC_LANG_POP([C++])
 AC_SUBST([SIMGRID_LIBS])
 AM_CONDITIONAL([HAVE_SIMGRID], [test "$hetcoll_have_simgrid" = yes && test "$hetcoll_have_bench_headers" = yes])])
