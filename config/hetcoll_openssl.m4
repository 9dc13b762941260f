# OpenSSL, for aggregators: its headers at build time. Its library is opened at run time.
AC_DEFUN([HETCOLL_OPENSSL],
[AC_ARG_WITH([openssl],
    [AS_HELP_STRING([--with-openssl@<:@=DIR@:>@], [aggregators, which are reached by OpenSSL's TLS; the default is where its headers are])],
    [], [with_openssl=check])
 HETCOLL_WITH_OPENSSL=0
 OPENSSL_CPPFLAGS=
 AS_CASE([$with_openssl], [no|yes|check], [], [OPENSSL_CPPFLAGS="-isystem $with_openssl/include"])
 AS_IF([test "$with_openssl" = no],
    [hetcoll_no_openssl="--without-openssl"],
    [AC_LANG_PUSH([C++])
     hetcoll_saved_flags=$CPPFLAGS
     CPPFLAGS="$CPPFLAGS $OPENSSL_CPPFLAGS"
     hetcoll_no_openssl=
     AC_MSG_CHECKING([for openssl/ssl.h, 1.1.1 or newer])
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <openssl/ssl.h>
        #if OPENSSL_VERSION_NUMBER < 0x10101000L
        #error too old
        #endif
        ]], [[return sizeof(&SSL_CTX_set_psk_find_session_callback) == 0;]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         hetcoll_no_openssl="OpenSSL's headers are missing: install the Debian package libssl-dev"])
     CPPFLAGS=$hetcoll_saved_flags
     AC_LANG_POP([C++])
     AS_IF([test -z "$hetcoll_no_openssl"], [HETCOLL_WITH_OPENSSL=1],
        [AS_IF([test "$with_openssl" != check], [AC_MSG_ERROR([--with-openssl: $hetcoll_no_openssl])])])])
 AS_IF([test "$HETCOLL_WITH_OPENSSL" = 1],
    [HETCOLL_SUMMARY_LINE([OpenSSL], [found, aggregators are built])],
    [HETCOLL_SUMMARY_LINE([OpenSSL], [no aggregators ($hetcoll_no_openssl)])])
 AC_SUBST([HETCOLL_WITH_OPENSSL])
 AC_SUBST([OPENSSL_CPPFLAGS])
 AM_CONDITIONAL([WITH_OPENSSL], [test "$HETCOLL_WITH_OPENSSL" = 1])])

# UCX, for RDMA to aggregators and messages by adapters of a node: its headers at build time. Its library is opened at run time.
AC_DEFUN([HETCOLL_UCX],
[AC_ARG_WITH([ucx],
    [AS_HELP_STRING([--with-ucx@<:@=DIR@:>@], [RDMA to aggregators and messages by adapters of a node, by UCX; the default is where its headers are])],
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
     AC_MSG_CHECKING([for uct/api/uct.h, 1.11 or newer])
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <ucp/api/ucp.h>
        #include <ucs/async/async_fwd.h>
        #include <uct/api/uct.h>
        #if UCP_API_VERSION < UCP_VERSION(1, 11)
        #error too old
        #endif
        ]], [[return sizeof(&uct_ep_connect_to_ep) + sizeof(&ucs_async_poll) == 0;]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         hetcoll_no_ucx="UCX's headers are missing: install the Debian package libucx-dev"])
     CPPFLAGS=$hetcoll_saved_flags
     AC_LANG_POP([C++])
     AS_IF([test -z "$hetcoll_no_ucx"], [HETCOLL_WITH_UCX=1],
        [AS_IF([test "$with_ucx" != check], [AC_MSG_ERROR([--with-ucx: $hetcoll_no_ucx])])])])
 AS_IF([test "$HETCOLL_WITH_UCX" = 1],
    [HETCOLL_SUMMARY_LINE([UCX], [found, RDMA is built])],
    [HETCOLL_SUMMARY_LINE([UCX], [no RDMA ($hetcoll_no_ucx)])])
 AC_SUBST([HETCOLL_WITH_UCX])
 AC_SUBST([UCX_CPPFLAGS])
 AM_CONDITIONAL([WITH_UCX], [test "$HETCOLL_WITH_UCX" = 1])])
