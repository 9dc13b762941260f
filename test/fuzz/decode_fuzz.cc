// libFuzzer's target: make check-fuzz.
#include "test/fuzz/decode_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, std::size_t size)
{
    hetcoll::test::check_decode(std::as_bytes(std::span(data, size)));
    return 0;
}
