# HETCOLL_MODEL: can test/model explore compiled code? It stands in for libtsan under code compiled with
# -fsanitize=thread, and changes stacks by itself.
AC_DEFUN([HETCOLL_MODEL],
[AC_CHECK_TOOL([OBJCOPY], [objcopy])
 AC_LANG_PUSH([C++])
 hetcoll_saved_flags=$CXXFLAGS
 CXXFLAGS="$CXXFLAGS -std=c++20 -fsanitize=thread -Wno-tsan"
 AC_MSG_CHECKING([whether the model tests can be built])
 HETCOLL_NO_MODEL=
 AS_IF([test "x$HETCOLL_SANITIZER" != x],
    [HETCOLL_NO_MODEL="built with -fsanitize=$HETCOLL_SANITIZER, which changes stacks and memory too"],
    [test "$HETCOLL_WITH_CUDA" != 1], [HETCOLL_NO_MODEL="built without CUDA, so without what they look at"],
    [test -z "$OBJCOPY"], [HETCOLL_NO_MODEL="no objcopy: install the Debian package binutils"],
    [test "x$hetcoll_have_gtest" != xyes], [HETCOLL_NO_MODEL="no GoogleTest: install the Debian package libgtest-dev"],
    [AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
        #include <atomic>
        #include <ucontext.h>
        #if !defined(__x86_64__) || defined(__clang__) || !defined(__SANITIZE_THREAD__)
        #error
        #endif
        std::atomic<int> x;
        int main() { return x.load() + (makecontext != nullptr); }
        ]])], [],
        [HETCOLL_NO_MODEL="$CXX is no g++ for x86-64 that takes -fsanitize=thread, and no other was tried"])])
 AC_MSG_RESULT([${HETCOLL_NO_MODEL:-yes}])
 HETCOLL_SUMMARY_LINE([model tests], [${HETCOLL_NO_MODEL:-yes}])
 CXXFLAGS=$hetcoll_saved_flags
 AC_LANG_POP([C++])
 AC_SUBST([HETCOLL_NO_MODEL])
 AM_CONDITIONAL([WITH_MODEL], [test -z "$HETCOLL_NO_MODEL"])])
