#include "scan.h"

#include "ranks.h"
#include "vector.h"

#define LN2 0.693147180559945309417
#define REST 0x1p-60    /* the sum over k stops at this relative size of its rest */
#define SMALLEST 0x1p-840 /* positive row entries below this might have lost something */
#define SMALLEST_ROW -60  /* ... and the power of two of a row's largest entry: with both, a sum is
                           * above 2^-900, and what decays below 2^-1021 is nothing to it */
#define MOST_SCALING 960  /* a power of two a row may be scaled by in float64 */

void
dpq_scan_targets(size_t m, const double *q, int64_t n, int64_t *whole, double *part)
{
    for (size_t j = 0; j < m; j++) {
        double product = q[j] * (double)n;
        double rounding = fma(q[j], (double)n, -product);
        double low = floor(product);
        double rest = (product - low) + rounding;

        if (rest < 0.0) { /* the product was rounded up to an integer */
            low -= 1.0;
            rest += 1.0;
        }
        if (rest >= 1.0) {
            low += 1.0;
            rest -= 1.0;
        }
        whole[j] = (int64_t)low;
        part[j] = rest;
    }
}

void
dpq_scan_prepare(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level)
{
    int64_t before = 0;
    double before_part = 0.0, widest = 0.0;

    for (size_t t = p->lo[0]; t < p->hi[p->levels - 1]; t++) {
        widest = p->width[t] > widest ? p->width[t] : widest;
    }
    dpq_decay_fill(decay, p->rate, p->rank[p->intervals - 1] - p->rank[0]);
    for (size_t j = 0; j < p->levels; j++) {
        level[j].reach = p->whole[j] - before;
        level[j].slack = before_part - p->part[j];
        if (level[j].slack < 0.0) {
            level[j].reach += 1;
            level[j].slack += 1.0;
        }
        level[j].stay = exp(-p->rate * ((double)level[j].reach - level[j].slack));
        level[j].up = exp(-p->rate * (1.0 - p->part[j]));
        level[j].share = 1.0 / (double)(j + 1);
        level[j].widest = widest;
        level[j].gain = 1.0;
        before = p->whole[j];
        before_part = p->part[j];
    }
}

/* float64 rows */

#define NUMBER double
#define NAME(f) f##_float
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define ZERO 0.0
#define DECAY(k) dpq_decay_at(decay, (k))
#define DECAY_PART(y) exp(-p->rate * (y))
#include "scan_body.h"
#undef NUMBER
#undef NAME
#undef ADD
#undef MUL
#undef ZERO
#undef DECAY
#undef DECAY_PART

void
dpq_scan_sums(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
              size_t j, const double *H, double *sums, double *work)
{
    if (j > 0) {
        sums_float(p, decay, level, j, H, sums, work);
        return;
    }
    for (size_t t = p->lo[0]; t < p->hi[0]; t++) {
        sums[t - p->lo[0]] = 1.0;
    }
}

/* One more output in the same intervals, for n of them: factor[i] *= (width[i] + extra) * gain * stay,
 * and h[i] += factor[i] * a[i]. */
DPQ_VECTORIZED static void
one_more(size_t n, const double *width, double extra, double gain, double stay, const double *a,
         double *factor, double *h)
{
    for (size_t i = 0; i < n; i++) {
        factor[i] *= (width[i] + extra) * gain * stay;
        h[i] += factor[i] * a[i];
    }
}

/* h_j(t) = sum_k ..., for the first n intervals of level j, which are in the last level, too. The
 * same sum as copies_wide, but for many intervals at once: they leave from the end, as soon as the
 * bound on what is to come is small; those before cost little more than they have to. */
static void
copies_float(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
             size_t j, size_t n, const double *A, double *H, double *factor)
{
    const int64_t *rank = p->rank + p->lo[j];
    const double *width = p->width + p->lo[j];
    double *h = H + p->start[j];

    for (size_t i = 0; i < n; i++) {
        h[i] = A[p->start[j] + i];
        factor[i] = 1.0;
    }
    for (size_t l = j, k = 2; l-- > 0 && p->hi[l] > p->lo[j]; k++) {
        size_t at = p->start[l] + (p->lo[j] - p->lo[l]), below, above;
        double extra = p->lattice ? (double)(k - 1) : 0.0;
        double gain = level[k - 1].share * level[l + 1].gain;

        n = n < p->hi[l] - p->lo[j] ? n : p->hi[l] - p->lo[j];
        /* From level l to l + 1 at one rank, dist(u, [min(0, v), max(0, v)]) with u >= v: */
        below = dpq_ranks_first(rank, 0, n, p->whole[l] + 1);
        above = dpq_ranks_first(rank, below, n, p->whole[l + 1] + (p->part[l + 1] > 0.0));
        one_more(below, width, extra, gain, 1.0, A + at, factor, h); /* u <= 0: 0 */
        for (size_t i = below; i < above; i++) { /* v < 0 < u: u */
            double stay = dpq_decay_at(decay, rank[i] - p->whole[l] - 1) * level[l].up;

            factor[i] *= (width[i] + extra) * gain * stay;
            h[i] += factor[i] * A[at + i];
        }
        one_more(n - above, width + above, extra, gain, level[l + 1].stay, A + at + above,
                 factor + above, h + above); /* v >= 0: u - v = n_{l+1} */
        while (n > 0 && factor[n - 1] * H[at + n - 1] < h[n - 1] * REST) {
            n--;
        }
        if (n == 0) {
            break;
        }
    }
}

/* a[i] *= width[i] * gain for n entries; the smallest and largest result. Four of each are kept, so
 * that comparisons overlap. */
static void
scale(size_t n, double *a, const double *width, double gain, double *smallest, double *largest)
{
    double low[4] = {INFINITY, INFINITY, INFINITY, INFINITY}, high[4] = {0.0, 0.0, 0.0, 0.0};
    size_t i;

    for (i = 0; i + 4 <= n; i += 4) {
        for (size_t k = 0; k < 4; k++) {
            double x = a[i + k] * (width[i + k] * gain);

            a[i + k] = x;
            low[k] = x < low[k] ? x : low[k];
            high[k] = x > high[k] ? x : high[k];
        }
    }
    for (; i < n; i++) {
        a[i] *= width[i] * gain;
        low[0] = a[i] < low[0] ? a[i] : low[0];
        high[0] = a[i] > high[0] ? a[i] : high[0];
    }
    for (i = 1; i < 4; i++) {
        low[0] = low[i] < low[0] ? low[i] : low[0];
        high[0] = high[i] > high[0] ? high[i] : high[0];
    }
    *smallest = low[0];
    *largest = high[0];
}

dpq_status
dpq_scan_close(const dpq_scan_problem *p, const dpq_decay *decay, dpq_scan_level *level, size_t j,
               double *A, double *H, int64_t *exponent, double *work)
{
    size_t lo = p->lo[j], n = p->hi[j] - lo, shared = 0, unreached = 0;
    double *a = A + p->start[j], *h = H + p->start[j];
    double smallest, largest;
    int scaling;

    /* Scale so that the largest factor is about one: widths, and what the last row ended with. */
    (void)frexp(level[j].widest, &scaling);
    exponent[j] = 0;
    if (j > 0) {
        int last;

        (void)frexp(level[j - 1].largest, &last);
        if (last < SMALLEST_ROW) {
            return DPQ_ERR_RANGE;
        }
        scaling += last;
        exponent[j] = exponent[j - 1];
        /* intervals of this row that are in the last one's, too */
        shared = p->hi[j - 1] > lo ? p->hi[j - 1] - lo : 0;
        shared = shared < n ? shared : n;
        /* a_j(t) is truly zero only at the first interval, where no other comes before it */
        unreached = lo == p->lo[j - 1];
    }
    if (scaling > MOST_SCALING || scaling < -MOST_SCALING) {
        return DPQ_ERR_RANGE;
    }
    level[j].gain = ldexp(1.0, -scaling);
    exponent[j] += scaling;
    scale(n - unreached, a + unreached, p->width + lo + unreached, level[j].gain, &smallest,
          &largest);
    copies_float(p, decay, level, j, shared, A, H, work);
    for (size_t i = 0; i < shared; i++) {
        largest = h[i] > largest ? h[i] : largest;
    }
    for (size_t i = shared; i < n; i++) {
        h[i] = a[i];
    }
    level[j].largest = largest;
    return smallest < SMALLEST || h[0] < SMALLEST ? DPQ_ERR_RANGE : DPQ_OK;
}

/* |r_t - Q_m|: the last step, to v = 0. */
static double
last_distance(const dpq_scan_problem *p, size_t t)
{
    size_t m = p->levels - 1;

    return fabs((double)(p->rank[t] - p->whole[m]) - p->part[m]);
}

dpq_status
dpq_scan_total(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
               const double *H, const int64_t *exponent, double *log_total)
{
    size_t m = p->levels - 1, lo = p->lo[m];
    double below = exp(-p->rate * p->part[m]), above = level[m].up, sum = 0.0;

    for (size_t t = lo; t < p->hi[m]; t++) {
        int64_t d = p->rank[t] - p->whole[m];

        sum += H[p->start[m] + (t - lo)] *
               (d <= 0 ? dpq_decay_at(decay, -d) * below : dpq_decay_at(decay, d - 1) * above);
    }
    if (sum < SMALLEST) {
        return DPQ_ERR_RANGE;
    }
    *log_total = log(sum) + (double)exponent[m] * LN2;
    return DPQ_OK;
}

dpq_status
dpq_scan_forward(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level, double *A,
                 double *H, int64_t *exponent, double *work, double *log_total)
{
    dpq_scan_prepare(p, decay, level);
    for (size_t j = 0; j < p->levels; j++) {
        dpq_status status;

        dpq_scan_sums(p, decay, level, j, H, A + p->start[j], work);
        status = dpq_scan_close(p, decay, level, j, A, H, exponent, work);
        if (status != DPQ_OK) {
            return status;
        }
    }
    return dpq_scan_total(p, decay, level, H, exponent, log_total);
}

/* wide rows */

#define FARTHEST 1e17 /* an exponent beyond this is held there: int64 must not overflow */

static dpq_wide
wide_of(double x)
{
    dpq_wide number = {0.0, 0};
    int exponent;

    if (x > 0.0) {
        number.mantissa = 2.0 * frexp(x, &exponent);
        number.exponent = exponent - 1;
    }
    return number;
}

static dpq_wide
wide_mul(dpq_wide a, dpq_wide b)
{
    dpq_wide product = {a.mantissa * b.mantissa, a.exponent + b.exponent};

    if (product.mantissa >= 2.0) {
        product.mantissa *= 0.5;
        product.exponent += 1;
    }
    return product;
}

static dpq_wide
wide_add(dpq_wide a, dpq_wide b)
{
    dpq_wide swap;

    if (a.mantissa == 0.0) {
        return b;
    }
    if (b.mantissa == 0.0) {
        return a;
    }
    if (a.exponent < b.exponent) {
        swap = a;
        a = b;
        b = swap;
    }
    if (a.exponent - b.exponent > 64) { /* below the last bit */
        return a;
    }
    a.mantissa += ldexp(b.mantissa, (int)(b.exponent - a.exponent));
    if (a.mantissa >= 2.0) {
        a.mantissa *= 0.5;
        a.exponent += 1;
    }
    return a;
}

static int
wide_less(dpq_wide a, dpq_wide b)
{
    if (a.mantissa == 0.0 || b.mantissa == 0.0) {
        return a.mantissa < b.mantissa;
    }
    return a.exponent < b.exponent || (a.exponent == b.exponent && a.mantissa < b.mantissa);
}

/* exp(-x), x >= 0 */
static dpq_wide
wide_exp(double x)
{
    /* ln 2 in two parts: the product of an integer below 2^20 with the first is exact */
    const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    double whole = floor(-(x < FARTHEST ? x : FARTHEST) / LN2);
    dpq_wide number = wide_of(exp((-(x < FARTHEST ? x : FARTHEST) - whole * ln2_high) -
                                  whole * ln2_low));

    number.exponent += (int64_t)whole;
    return number;
}

#define NUMBER dpq_wide
#define NAME(f) f##_wide
#define ADD(a, b) wide_add((a), (b))
#define MUL(a, b) wide_mul((a), (b))
#define ZERO ((dpq_wide){0.0, 0})
#define DECAY(k) wide_exp(decay->rate * (double)(k))
#define DECAY_PART(y) wide_exp(p->rate * (y))
#include "scan_body.h"

/* h_j(t) = sum_k ..., given a_j(t) = `alone`: k outputs in interval t, the first at level l. */
static dpq_wide
copies_wide(const dpq_scan_problem *p, const dpq_scan_level *level, size_t j, size_t t,
            dpq_wide alone, const dpq_wide *A, const dpq_wide *H)
{
    int64_t r = p->rank[t];
    double width = p->width[t];
    size_t k = 2;
    dpq_wide sum = alone, factor = wide_of(1.0);

    for (size_t l = j; l-- > 0 && t < p->hi[l]; k++) {
        double places = p->lattice ? width + (double)(k - 1) : width;
        size_t at = p->start[l] + (t - p->lo[l]);

        factor = wide_mul(factor, wide_mul(wide_of(places), wide_of(level[k - 1].share)));
        /* From level l to l + 1 at one rank, dist(u, [min(0, v), max(0, v)]) with u >= v. */
        if (r > p->whole[l]) { /* u > 0 */
            double distance = (double)level[l + 1].reach - level[l + 1].slack; /* u - v = n_{l+1} */

            if (r < p->whole[l + 1] || (r == p->whole[l + 1] && p->part[l + 1] > 0.0)) { /* v < 0 */
                distance = (double)(r - p->whole[l]) - p->part[l];
            }
            factor = wide_mul(factor, wide_exp(p->rate * distance));
        }
        if (wide_less(wide_mul(factor, H[at]), wide_mul(sum, wide_of(REST)))) {
            break;
        }
        sum = wide_add(sum, wide_mul(factor, A[at]));
    }
    return sum;
}

void
dpq_scan_forward_wide(const dpq_scan_problem *p, dpq_decay *decay, dpq_scan_level *level,
                      dpq_wide *A, dpq_wide *H, dpq_wide *work, double *log_total)
{
    size_t m = p->levels - 1;
    dpq_wide total = ZERO;

    dpq_scan_prepare(p, decay, level);
    for (size_t j = 0; j < p->levels; j++) {
        size_t lo = p->lo[j], n = p->hi[j] - lo;
        dpq_wide *a = A + p->start[j], *h = H + p->start[j];

        if (j > 0) {
            sums_wide(p, decay, level, j, H, a, work);
        }
        for (size_t i = 0; i < n; i++) {
            dpq_wide width = wide_of(p->width[lo + i]);

            a[i] = j > 0 ? wide_mul(a[i], width) : width;
            h[i] = copies_wide(p, level, j, lo + i, a[i], A, H);
        }
    }
    for (size_t t = p->lo[m]; t < p->hi[m]; t++) {
        total = wide_add(total, wide_mul(H[p->start[m] + (t - p->lo[m])],
                                         wide_exp(p->rate * last_distance(p, t))));
    }
    *log_total = log(total.mantissa) + (double)total.exponent * LN2;
}
