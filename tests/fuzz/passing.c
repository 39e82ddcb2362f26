#include "passing.h"

#include "fuzz.h"

#define MOST_LEVELS 7
#define MOST_CELLS 88

typedef long double real;

/* What k outputs of one cell measure together. */
static real
several(real volume, real point, size_t k)
{
    real product = 1;

    for (size_t i = 0; i < k; i++) {
        product *= (volume + (real)i * point) / (real)(i + 1);
    }
    return product;
}

/* The weight of a step that goes up by so many cells, and its sign: that of the kernel. */
static real
step(const dpq_passing_problem *p, double gap, ptrdiff_t cells, int *sign)
{
    real way = (real)cells * p->ranks - gap;

    *sign = (double)cells >= ceil(gap / p->ranks) ? 1 : -1;
    return expl(-(real)p->rate * *sign * way);
}

/* The ends: from v = 0, and to it. */
static real
end(const dpq_passing_problem *p, size_t j, size_t k, int *is_above)
{
    double v = (double)k * p->ranks + p->rest - p->target[j];

    *is_above = v >= 0.0;
    return expl(-(real)p->rate * fabs(v));
}

static int
is_in(const dpq_passing_problem *p, size_t j, size_t k)
{
    return k >= p->from[j] && k < p->to[j];
}

/* What k >= 1 outputs of a cell weigh, that steps with the signs s and t lead to and away from. */
static real
run(const dpq_passing_problem *p, size_t k, size_t outputs, int s, int t)
{
    real bent = expl((real)p->rate * (p->ranks - 1));

    if (outputs == 1) {
        return p->volume[(s - t) / 2 + 1][k];
    }
    return (s > 0 ? bent : 1) * (t > 0 ? bent : 1) * several(p->volume[1][k], p->point, outputs);
}

typedef real table[MOST_LEVELS][MOST_CELLS][2]; /* by the sign: -1, 1 */

/* All that arrives anew at a cell, and all that follows where paths leave one. */
static void
both_ways(const dpq_passing_problem *p, table arrive, table follow)
{
    const size_t m = p->levels;

    for (size_t j = 0; j < m; j++) {
        for (size_t k = 0; k < p->cells; k++) {
            int above, sign;
            real weight = end(p, 0, k, &above);

            arrive[j][k][0] = arrive[j][k][1] = 0;
            if (j == 0) {
                arrive[0][k][above] = weight;
                continue;
            }
            for (size_t i = 0; i < k; i++) { /* the end of a run before */
                real way = step(p, p->target[j] - p->target[j - 1], (ptrdiff_t)(k - i), &sign);

                for (size_t outputs = 1; outputs <= j; outputs++) {
                    const size_t first = j - outputs;
                    real stay = expl(-(real)p->rate * (p->target[j - 1] - p->target[first]));

                    for (int s = 0; s < 2 && is_in(p, first, i) && is_in(p, j - 1, i); s++) {
                        arrive[j][k][sign > 0] +=
                            arrive[first][i][s] * run(p, i, outputs, 2 * s - 1, sign) * stay * way;
                    }
                }
            }
            if (!is_in(p, j, k)) {
                arrive[j][k][0] = arrive[j][k][1] = 0;
            }
        }
    }
    for (size_t j = m; j-- > 0;) {
        for (size_t k = 0; k < p->cells; k++) {
            int above, sign;
            real weight = end(p, m - 1, k, &above);

            follow[j][k][0] = follow[j][k][1] = 0;
            if (j == m - 1) {
                const double v = (double)k * p->ranks + p->rest - p->target[j];

                follow[j][k][v <= 0.0] = weight;
                continue;
            }
            for (size_t i = k + 1; i < p->cells; i++) {
                real way = step(p, p->target[j + 1] - p->target[j], (ptrdiff_t)(i - k), &sign);

                for (size_t outputs = 1; j + outputs < m; outputs++) {
                    const size_t last = j + outputs;
                    real stay = expl(-(real)p->rate * (p->target[last] - p->target[j + 1]));

                    for (int t = 0; t < 2 && is_in(p, j + 1, i) && is_in(p, last, i); t++) {
                        follow[j][k][sign > 0] +=
                            way * run(p, i, outputs, sign, 2 * t - 1) * stay * follow[last][i][t];
                    }
                }
            }
        }
    }
}

/* What paths weigh that pass a cell at level j. */
static real
passing(const dpq_passing_problem *p, table arrive, table follow, size_t j, size_t k)
{
    real all = 0;

    for (size_t first = 0; first <= j; first++) {
        for (size_t last = j; last < p->levels; last++) {
            real stay = expl(-(real)p->rate * (p->target[last] - p->target[first]));

            for (int s = 0; s < 2 && is_in(p, first, k) && is_in(p, last, k); s++) {
                for (int t = 0; t < 2; t++) {
                    real weight = run(p, k, last - first + 1, 2 * s - 1, 2 * t - 1);

                    all += arrive[first][k][s] * weight * stay * follow[last][k][t];
                }
            }
        }
    }
    return all;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};
    const size_t m = (size_t)fuzz_between(&in, 1, MOST_LEVELS), block = DPQ_PASSING_BLOCK;
    const size_t cells = block * (size_t)fuzz_between(&in, 1, MOST_CELLS / DPQ_PASSING_BLOCK);
    const double ranks = (double)fuzz_between(&in, 1, 20), wild = fuzz_bit(&in);
    const double rate = (double)fuzz_between(&in, 1, 64) / 16.0 / ranks;
    double *volume[3], *target = fuzz_room(m, sizeof *target);
    size_t *from = fuzz_room(m, sizeof *from), *to = fuzz_room(m, sizeof *to), heavies = 0;
    size_t *heavy = fuzz_room(cells, sizeof *heavy);
    /* a few cells between targets, or many */
    const int64_t most = fuzz_bit(&in) ? 64 : (int64_t)fmin(16.0 * 80.0, 16.0 * DPQ_PASSING_APART / (rate * ranks));
    size_t longest;
    float *bounds;
    table arrive, follow;
    dpq_passing_problem p;
    real total = 0;
    double found;
    void *work;

    for (int b = 0; b < 3; b++) {
        volume[b] = fuzz_room(cells, sizeof *volume[b]);
    }
    for (size_t k = 0; k < cells; k++) {
        const double bend = exp(rate * (ranks - 1.0) * fuzz_share(&in));

        volume[1][k] = (double)fuzz_between(&in, 0, 9);
        if (wild != 0.0 && fuzz_bit(&in)) {
            volume[1][k] = ldexp(1.0, (int)fuzz_between(&in, -300, 200));
        }
        volume[0][k] = fmin(volume[1][k] * bend, 0x1p200);
        volume[2][k] = fmin(volume[1][k] * bend, 0x1p200);
        if (fuzz_bit(&in)) {
            heavy[heavies++] = k;
        }
    }
    for (size_t j = 0; j < m; j++) {
        const double low = j > 0 ? target[j - 1] : 0.0;
        const size_t last = j > 0 ? from[j - 1] / block : 0, all = cells / block;
        size_t least = j > 0 ? to[j - 1] / block : 1, begin;

        target[j] = low + (double)fuzz_between(&in, 1, most) / 16.0 * ranks;
        begin = (size_t)fuzz_between(&in, (int64_t)last, (int64_t)all - 1);
        least = begin + 1 > least ? begin + 1 : least;
        from[j] = block * begin;
        to[j] = block * (size_t)fuzz_between(&in, (int64_t)least, (int64_t)all);
    }
    p = (dpq_passing_problem){m,
                              cells,
                              ranks,
                              (double)fuzz_between(&in, 0, 9),
                              rate,
                              target,
                              {volume[0], volume[1], volume[2]},
                              fuzz_bit(&in) ? ldexp(1.0, (int)fuzz_between(&in, -30, 0)) : 0.0,
                              from,
                              to,
                              heavies,
                              heavy};
    longest = dpq_passing_longest(&p);
    bounds = fuzz_room(m * longest, sizeof *bounds);
    work = fuzz_room(dpq_passing_room(&p), 1);
    found = dpq_passing_log(&p, work, bounds);
    both_ways(&p, arrive, follow);
    for (size_t j = 0; j < m; j++) {
        for (size_t b = 0; b < cells / block; b++) {
            real exact = 0;
            size_t i;

            for (size_t k = b * block; k < (b + 1) * block; k++) {
                real passes = is_in(&p, j, k) ? passing(&p, arrive, follow, j, k) : 0;

                exact += passes;
                total += j == 0 ? passes : 0;
            }
            if (!is_in(&p, j, b * block)) {
                continue;
            }
            i = j * longest + b - from[j] / block;
            CHECK(!isnan(bounds[i]));
            if (exact > 0) {
                CHECK((real)bounds[i] + found >= logl(exact) - 1e-7L);
            }
        }
    }
    if (total > 0) {
        CHECK(found >= logl(total) - 1e-9L);
        /* and no more: outputs are counted, and what is added is nothing to them */
        if (wild == 0.0 && (m <= 4 || heavies == cells)) {
            CHECK(found <= logl(total) + 1e-9L || logl(total) < -300);
        }
    }
    free(work);
    free(bounds);
    free(heavy);
    free(to);
    free(from);
    free(target);
    for (int b = 0; b < 3; b++) {
        free(volume[b]);
    }
    return 0;
}
