# UCX and OpenSSL, for aggregators: their headers at build time. Their libraries are opened at run time.
AC_DEFUN([HETCOLL_UCX],
[AC_ARG_WITH([ucx],
    [AS_HELP_STRING([--with-ucx@<:@=DIR@:>@], [aggregators, which are reached through UCX and joined by a key of OpenSSL's; the default is where the headers of both are])],
    [], [with_ucx=check])
 HETCOLL_WITH_UCX=0
 UCX_CPPFLAGS=
 AS_CASE([$with_ucx], [no|yes|check], [], [UCX_CPPFLAGS="-isystem $with_ucx/include"])
 AS_IF([test "$with_ucx" = no],
    [hetcoll_no_ucx="--without-ucx"],
    [AC_LANG_PUSH([C++])
     hetcoll_saved_flags=$CPPFLAGS
     CPPFLAGS="$CPPFLAGS $UCX_CPPFLAGS"
     hetcoll_no_ucx=
     AC_MSG_CHECKING([for ucp/api/ucp.h, 1.11 or newer])
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <ucp/api/ucp.h>
        #if UCP_API_VERSION < UCP_VERSION(1, 11)
        #error too old
        #endif
        ]], [[return static_cast<int>(UCP_AM_SEND_FLAG_EAGER) + static_cast<int>(UCP_PARAM_FIELD_NAME);]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         hetcoll_no_ucx="UCX's headers are missing: install the Debian package libucx-dev"])
     AC_MSG_CHECKING([for openssl/hmac.h])
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <openssl/hmac.h>
        #include <openssl/rand.h>
        ]], [[return sizeof(&HMAC) == 0;]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         hetcoll_no_ucx="OpenSSL's headers are missing: install the Debian package libssl-dev"])
     CPPFLAGS=$hetcoll_saved_flags
     AC_LANG_POP([C++])
     AS_IF([test -z "$hetcoll_no_ucx"], [HETCOLL_WITH_UCX=1],
        [AS_IF([test "$with_ucx" != check], [AC_MSG_ERROR([--with-ucx: $hetcoll_no_ucx])])])])
 AS_IF([test "$HETCOLL_WITH_UCX" = 1],
    [HETCOLL_SUMMARY_LINE([UCX, OpenSSL], [found, aggregators are built])],
    [HETCOLL_SUMMARY_LINE([UCX, OpenSSL], [no aggregators ($hetcoll_no_ucx)])])
 AC_SUBST([HETCOLL_WITH_UCX])
 AC_SUBST([UCX_CPPFLAGS])
 AM_CONDITIONAL([WITH_UCX], [test "$HETCOLL_WITH_UCX" = 1])])
