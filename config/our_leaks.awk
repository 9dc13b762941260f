# Prints the direct leaks in a LeakSanitizer report that our own code allocated, and exits with 1 if
# there are any. A leak is ours if the first frame that is not the allocator's, the compiler's or the
# C++ library's is: -v root=SOURCE_DIR/ tells our files.
function finish()
{
    if (report != "" && ours) {
        printf "%s\n", report
        found = 1
    }
    report = ""
    ours = 0
    decided = 0
}

/^Direct leak/ { finish(); report = $0; next }
/^Indirect leak|^SUMMARY|^=====/ { finish(); next }
report != "" && /^ *#[0-9]+ / {
    report = report "\n" $0
    if (!decided && $0 !~ /__interceptor_|operator new|\/usr\/include\/c\+\+|\/libasan\.so|\/libstdc\+\+/) {
        decided = 1
        # Without a function it is another library's code, unloaded since.
        ours = index($0, root) > 0 || $0 ~ / in .*hetcoll/
    }
}

END { finish(); exit found }
