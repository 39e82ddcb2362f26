#include "smooth.h"

#include <math.h>

typedef struct {
    const int64_t *rank;
    const double *value;
    int64_t target;
    size_t at;        /* the run that holds the target */
    double t;
    double log_range; /* of the difference between the last and the first value */
    double best;      /* ln of the largest term so far */
} search;

/* t k, what the term of runs lo <= at <= hi loses. */
static double
loss(const search *s, size_t lo, size_t hi)
{
    int64_t low = lo < s->at ? s->rank[lo] : s->target;
    int64_t high = hi > s->at ? s->rank[hi - 1] + 1 : s->target;

    return s->t * (double)(high - low - 1);
}

static double
log_term(const search *s, size_t lo, size_t hi)
{
    double width = s->value[hi] - s->value[lo];

    return width > 0.0 ? log(width) - loss(s, lo, hi) : -INFINITY;
}

/* Take all pairs of lo in [lo_first, lo_stop) and hi in [hi_first, hi_last] that may be best. */
static void
divide(search *s, size_t lo_first, size_t lo_stop, size_t hi_first, size_t hi_last)
{
    while (lo_first < lo_stop) {
        size_t lo = lo_first + (lo_stop - lo_first) / 2;
        size_t hi = hi_first, row_at = hi_first;
        double row_best = -INFINITY;

        for (; hi <= hi_last && s->log_range - loss(s, lo, hi) > s->best; hi++) {
            double term = log_term(s, lo, hi);

            if (term > row_best) {
                row_best = term;
                row_at = hi;
            }
        }
        /* A row that ends early is no hindrance: lower rows end there, too. */
        if (row_best > s->best) {
            s->best = row_best;
        }
        if (hi > hi_first) {
            divide(s, lo_first, lo, hi_first, row_at);
        }
        lo_first = lo + 1;
        hi_first = row_at;
    }
}

void
dpq_smooth_log(size_t runs, const int64_t *rank, const double *value, int64_t target, size_t count,
               const double *t, double *log_smooth)
{
    search s = {.rank = rank, .value = value, .target = target};
    size_t stop = runs - 1;

    while (s.at < stop) { /* the first run with rank >= target */
        size_t middle = s.at + (stop - s.at) / 2;

        if (rank[middle] < target) {
            s.at = middle + 1;
        } else {
            stop = middle;
        }
    }
    s.log_range = log(value[runs - 1] - value[0]); /* -inf: no pair is looked at */
    for (size_t i = 0; i < count; i++) {
        s.t = t[i];
        s.best = -INFINITY;
        divide(&s, s.at, s.at + 1, s.at, runs - 1); /* a good term, so that far ones end early */
        divide(&s, 0, s.at, s.at, runs - 1);
        log_smooth[i] = s.best;
    }
}
