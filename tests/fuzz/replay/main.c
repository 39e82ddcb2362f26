/* A fuzz target without a fuzzer: NUMBER of inputs made up here, and then the given files. With no
 * argument, the name of the vectors that this machine has, of those that kernels have versions for.
 */
#include "fuzz.h"
#include "vector.h"

#define MOST_BYTES 512

int
main(int count, char **argument)
{
    static uint8_t bytes[4096];
    uint64_t state = 20;

    if (count < 2) {
#ifdef DPQ_CLONES
        puts(__builtin_cpu_supports("x86-64-v4")   ? "x86-64-v4"
             : __builtin_cpu_supports("x86-64-v3") ? "x86-64-v3"
                                                   : "default");
#else
        puts("default");
#endif
        return 0;
    }
    for (long i = strtol(argument[1], NULL, 10); i > 0; i--) {
        size_t size = (size_t)(fuzz_mix(&state) % (MOST_BYTES + 1));

        for (size_t k = 0; k < size; k++) {
            bytes[k] = (uint8_t)(fuzz_mix(&state) >> 56);
        }
        LLVMFuzzerTestOneInput(bytes, size);
    }
    for (int i = 2; i < count; i++) {
        FILE *file = fopen(argument[i], "rb");

        CHECK(file != NULL);
        LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof bytes, file));
        fclose(file);
    }
    return 0;
}
