#include "noise.h"

#include "int128.h"

#define MOST_WHOLES 1023 /* with a digit, 18 bits: times a numerator, it fits into 128 */
#define DIGIT 8          /* bits */

/* Random bits, of which none is lost: a decision needs few, and a secure word costs the most. */
typedef struct {
    bitgen_t *rng;
    dpq_u128 bits;
    unsigned left;
} source;

static source
source_of(bitgen_t *rng)
{
    source made = {rng, dpq_u128_of(0, 0), 0};

    return made;
}

/* The word of `count` <= 64 ones. */
static inline uint64_t
low_bits(unsigned count)
{
    return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* `count` <= 64 bits. */
static inline uint64_t
take(source *from, unsigned count)
{
    uint64_t taken;

    if (from->left < count) {
        dpq_u128 word = dpq_u128_of(0, from->rng->next_uint64(from->rng->state));

        /* above those that are left: no bit is in both */
        from->bits = dpq_u128_add(from->bits, dpq_u128_up(word, from->left));
        from->left += 64;
    }
    taken = dpq_u128_low(from->bits) & low_bits(count);
    from->bits = dpq_u128_down(from->bits, count);
    from->left -= count;
    return taken;
}

/* The integers 0, ..., size - 1. */
typedef struct {
    dpq_u128 size;
    unsigned bits; /* that size - 1 needs */
} range;

static range
range_of(dpq_u128 size)
{
    range made = {size, 0};
    dpq_u128 left = dpq_u128_sub(size, dpq_u128_of(0, 1));

    for (; dpq_u128_less(dpq_u128_of(0, 0), left); left = dpq_u128_down(left, 1)) {
        made.bits++;
    }
    return made;
}

/* One of them, all equally likely. */
static dpq_u128
draw_from(const range *integers, source *from)
{
    dpq_u128 drawn;

    do {
        if (integers->bits <= 64) {
            drawn = dpq_u128_of(0, take(from, integers->bits));
        }
        else {
            uint64_t low = take(from, 64);

            drawn = dpq_u128_of(take(from, integers->bits - 64), low);
        }
    } while (!dpq_u128_less(drawn, integers->size));
    return drawn;
}

static uint64_t
draw_below(uint64_t n, source *from)
{
    range integers = range_of(dpq_u128_of(0, n));

    return dpq_u128_low(draw_from(&integers, from));
}

/* The cell of a number on [0, 1): [digit t + rest, digit t + rest + 1) / (2^DIGIT t), for a range
 * of t rests. The cell of a uniform number has a uniform digit and, independently, a uniform
 * rest, which waits to be drawn until it is asked for.
 */
typedef struct {
    unsigned digit; /* 2^DIGIT for the number 1 */
    int known;      /* whether the rest is drawn */
    dpq_u128 rest;
} cell;

static cell
draw_cell(source *from)
{
    cell drawn = {(unsigned)take(from, DIGIT), 0, dpq_u128_of(0, 0)};

    return drawn;
}

static dpq_u128
rest_of(cell *number, const range *rests, source *from)
{
    if (!number->known) {
        number->rest = draw_from(rests, from);
        number->known = 1;
    }
    return number->rest;
}

/* The number part / t, the left end of its cell. */
static cell
cell_of(dpq_u128 part, const range *rests)
{
    dpq_u128 fine = dpq_u128_up(part, DIGIT);
    unsigned digit = (unsigned)dpq_u128_low(dpq_u128_div(fine, rests->size));
    cell made = {digit, 1, dpq_u128_rem(fine, rests->size)};

    return made;
}

/* A descent: numbers x > W_1 > W_2 > ..., each W uniform on [0, 1). Only cells are drawn. */
typedef struct {
    cell *last;    /* of x at first, then `lowest` */
    cell lowest;
    uint64_t tied; /* how many of the last numbers are uniform on the same cell; 0 where the last
                      is x, given as the left end of its cell */
} descent;

/* Whether the next number W lies below the last one; if so, W is the last one.
 *
 * Different cells decide. In a shared cell, uniform numbers are equally likely to stand in any
 * order, whatever came before: W is the lowest of tied + 1 with probability 1 / (tied + 1), and
 * given that, the order of the others is as it was. No W of the cell lies below its left end.
 *
 * The last index and not the first says "lowest", so that words of zero end the descent.
 */
static inline int
descends(descent *down, const range *rests, source *from)
{
    cell next = draw_cell(from);
    int same = next.digit == down->last->digit;
    int below = next.digit < down->last->digit;

    if (same) {
        dpq_u128 rest = rest_of(down->last, rests, from);

        same = dpq_u128_equal(rest_of(&next, rests, from), rest);
        below = dpq_u128_less(next.rest, rest);
    }
    if (same) {
        below = down->tied > 0 && draw_below(down->tied + 1, from) == down->tied;
    }
    if (below) {
        down->tied = same ? down->tied + 1 : 1;
        down->lowest = next;
        down->last = &down->lowest;
    }
    return below;
}

/* 1 with probability exp(-x): the descent has at least n steps with probability x^n / n!, hence
 * an even number of them with probability 1 - x + x^2/2! - ... (von Neumann 1951). `tied` is 1
 * for an x that is itself uniform: its cell stays as it is, with the rest drawn or not.
 */
static inline int
draw_decay(cell *x, uint64_t tied, const range *rests, source *from)
{
    descent down = {x, *x, tied};
    int even = 1;

    while (descends(&down, rests, from)) {
        even = !even;
    }
    return even;
}

void
dpq_noise_bernoulli(uint64_t whole, const dpq_noise_ratio *part, size_t size, bitgen_t *rng,
                    uint8_t *drawn)
{
    source from = source_of(rng);
    range rests = range_of(dpq_u128_of(part->denominator[1], part->denominator[0]));
    cell one = cell_of(rests.size, &rests);
    cell x = cell_of(dpq_u128_of(part->numerator[1], part->numerator[0]), &rests);

    for (size_t i = 0; i < size; i++) {
        uint64_t passed = 0;

        while (passed < whole && draw_decay(&one, 0, &rests, &from)) {
            passed++;
        }
        drawn[i] = passed == whole && draw_decay(&x, 0, &rests, &from);
    }
}

/* Either sign with probability 1/2; 0 for a negative zero, which would be zero a second time. */
static int
draw_sign(int64_t magnitude, source *from, int64_t *drawn)
{
    int negative = (int)take(from, 1);

    *drawn = negative ? -magnitude : magnitude;
    return !(negative && magnitude == 0);
}

/* floor(E t / s), E exponential of mean 1: at least k with probability exp(-k s / t).
 *
 * E = whole + x by von Neumann: x uniform on [0, 1) is taken with probability exp(-x), and the
 * number of x refused before, each with probability 1/e and independently of the one taken, is
 * whole. The cell of x is floor(2^DIGIT x t); rounding down to it first changes nothing.
 */
static int64_t
draw_geometric(const range *rests, dpq_u128 s, source *from)
{
    unsigned whole = 0;
    cell x = draw_cell(from);
    dpq_u128 digits, fine;

    while (whole < MOST_WHOLES && !draw_decay(&x, 1, rests, from)) {
        whole++;
        x = draw_cell(from);
    }
    digits = dpq_u128_of(0, whole << DIGIT | x.digit);
    fine = dpq_u128_add(dpq_u128_mul(digits, rests->size), rest_of(&x, rests, from));
    return (int64_t)dpq_u128_low(dpq_u128_div(fine, dpq_u128_up(s, DIGIT)));
}

void
dpq_noise_laplace(const dpq_noise_ratio *scale, size_t size, bitgen_t *rng, int64_t *drawn)
{
    source from = source_of(rng);
    range rests = range_of(dpq_u128_of(scale->numerator[1], scale->numerator[0]));
    dpq_u128 s = dpq_u128_of(scale->denominator[1], scale->denominator[0]);

    for (size_t i = 0; i < size; i++) {
        while (!draw_sign(draw_geometric(&rests, s, &from), &from, drawn + i)) {
        }
    }
}

/* ceil(a / b), a + b < 2^128. */
static inline dpq_u128
ceil_of(dpq_u128 a, dpq_u128 b)
{
    dpq_u128 most = dpq_u128_sub(dpq_u128_add(a, b), dpq_u128_of(0, 1));

    return dpq_u128_div(most, b);
}

/* k >= 0 with probability proportional to exp(-k^2 / 2): k geometric with ratio exp(-1/2) is
 * taken with probability exp(-k (k - 1) / 2).
 */
static unsigned
draw_whole(source *from)
{
    const range two = range_of(dpq_u128_of(0, 2));
    cell half = cell_of(dpq_u128_of(0, 1), &two);

    for (;;) {
        unsigned whole = 0, wanted, passed = 0;

        while (whole < MOST_WHOLES && draw_decay(&half, 0, &two, from)) {
            whole++;
        }
        wanted = whole * (whole - 1); /* 0 for whole = 0, too */
        while (passed < wanted && draw_decay(&half, 0, &two, from)) {
            passed++;
        }
        if (passed == wanted) {
            return whole;
        }
    }
}

/* 1 with probability exp(-x (2k + x) / 2), x = part / t.
 *
 * k + 1 times, a descent from x is thinned: each step counts with probability
 * (2k + x) / (2k + 2) only, or ends the descent. It then has at least n steps with probability
 * (x (2k + x) / (2k + 2))^n / n!, and an even number with the (k + 1)-th root of what is wanted.
 */
static int
draw_fraction(unsigned k, dpq_u128 part, const range *rests, source *from)
{
    cell x = cell_of(part, rests);

    for (unsigned test = 0; test <= k; test++) {
        descent down = {&x, x, 0};
        int even = 1;

        while (descends(&down, rests, from)) {
            descent again = {&x, x, 0};
            uint64_t side = draw_below(2 * (uint64_t)k + 2, from);

            if (side > 2 * k || (side == 2 * k && !descends(&again, rests, from))) {
                break;
            }
            even = !even;
        }
        if (!even) {
            return 0;
        }
    }
    return 1;
}

/* |k| of the discrete Gaussian of sigma = t / s, with zero twice as likely as its share (Karney,
 * "Sampling exactly from the normal distribution", ACM Trans. Math. Software 42(1), 2016).
 *
 * Every integer i >= 0 is i = sigma (whole + x) with whole >= 0 and 0 <= x < 1: the integers of
 * one `whole` begin at ceil(sigma whole), and no more than ceil(sigma) of them have x < 1. So a
 * uniform choice among ceil(sigma) reaches each i with the same probability once its `whole` is
 * drawn, and what is taken has the weight exp(-whole^2 / 2 - x (2 whole + x) / 2)
 * = exp(-i^2 / (2 sigma^2)).
 */
static int64_t
draw_half_gaussian(const range *rests, const range *steps, dpq_u128 s, source *from)
{
    for (;;) {
        unsigned whole = draw_whole(from);
        dpq_u128 begin = dpq_u128_mul(dpq_u128_of(0, whole), rests->size); /* in units of 1 / s */
        dpq_u128 first = ceil_of(begin, s);
        dpq_u128 step = draw_from(steps, from);
        dpq_u128 integer = dpq_u128_add(first, step);
        dpq_u128 part = dpq_u128_sub(dpq_u128_mul(integer, s), begin); /* x t */

        if (dpq_u128_less(part, rests->size) && draw_fraction(whole, part, rests, from)) {
            return (int64_t)dpq_u128_low(integer);
        }
    }
}

void
dpq_noise_gaussian(const dpq_noise_ratio *sigma, size_t size, bitgen_t *rng, int64_t *drawn)
{
    source from = source_of(rng);
    range rests = range_of(dpq_u128_of(sigma->numerator[1], sigma->numerator[0]));
    dpq_u128 s = dpq_u128_of(sigma->denominator[1], sigma->denominator[0]);
    range steps = range_of(ceil_of(rests.size, s)); /* ceil(sigma) */

    for (size_t i = 0; i < size; i++) {
        while (!draw_sign(draw_half_gaussian(&rests, &steps, s, &from), &from, drawn + i)) {
        }
    }
}
