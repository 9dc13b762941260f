# verdict.sh, for `.`: says what is right and what is not, and counts both.
passed=0 failed=0

# With the words for it: those of verdict_words, or passed and FAILED.
verdict() # STATUS NAME WHY
{
    local words=${verdict_words:-passed FAILED}
    if [ "$1" = 0 ]; then
        printf '%-8s%s\n' "${words% *}" "$2: ${3%%$'\n'*}"
        passed=$((passed + 1))
    else
        printf '%-8s%s\n' "${words#* }" "$2: $3"
        failed=$((failed + 1))
    fi
}

# True if all was right, and there was something.
summary()
{
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
