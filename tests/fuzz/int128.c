/* The two words of csrc/int128.h against the compiler's own integers. */
#ifndef DPQ_PORTABLE
#define DPQ_PORTABLE
#endif

#include "int128.h"

#include "fuzz.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

static u128
value_of(dpq_u128 a)
{
    return (u128)dpq_u128_high(a) << 64 | dpq_u128_low(a);
}

static dpq_u128
words_of(u128 a)
{
    return dpq_u128_of((uint64_t)(a >> 64), (uint64_t)a);
}

/* Of any length, often just below or at a power of two. */
static u128
draw_wide(fuzz_input *in)
{
    int shift = (int)fuzz_between(in, 0, 127), kind = (int)fuzz_between(in, 0, 3);
    u128 power = (u128)1 << shift;

    if (kind == 0) {
        return fuzz_bit(in) ? power - 1 : power;
    }
    return ((u128)fuzz_bytes(in, 8) << 64 | fuzz_bytes(in, 8)) >> shift;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    u128 a = draw_wide(&in), b = draw_wide(&in);
    dpq_u128 x = words_of(a), y = words_of(b);
    int64_t left = (int64_t)draw_wide(&in), right = (int64_t)draw_wide(&in);

    CHECK(value_of(x) == a);
    CHECK(dpq_u128_less(x, y) == (a < b) && dpq_u128_equal(x, y) == (a == b));
    CHECK(value_of(dpq_u128_add(x, y)) == a + b);
    CHECK(value_of(dpq_u128_sub(x, y)) == a - b);
    CHECK(value_of(dpq_u128_mul(x, y)) == a * b);
    CHECK(value_of(dpq_u128_product(dpq_u128_low(x), dpq_u128_low(y))) ==
          (u128)(uint64_t)a * (uint64_t)b);
    CHECK(value_of(dpq_u128_add_signed(x, left, right)) == a + (u128)((i128)left * right));
    for (unsigned shift = 0; shift < 128; shift++) {
        CHECK(value_of(dpq_u128_up(x, shift)) == a << shift);
        CHECK(value_of(dpq_u128_down(x, shift)) == a >> shift);
    }
    if (b != 0) {
        CHECK(value_of(dpq_u128_div(x, y)) == a / b);
        CHECK(value_of(dpq_u128_rem(x, y)) == a % b);
    }
    return 0;
}
