#include "lattice.h"

#include <math.h>
#include <string.h>

#include "vector.h"

#define BLOCK DPQ_COLUMN_BLOCK /* values encoded at once before they are counted */
#define NEAR 2048              /* up to this many points are counted in two places by turns */
#define BYTES 256              /* values that a column of bytes may have */
#define STEP 8                 /* values of a step, for which as many come nearer from memory */
#define CHUNK 4096             /* values looked at between two tests for an early stop */
#define TOGETHER 16            /* bisections that go on at once */
#define PROBES 8               /* values looked at between two comparisons, where one is looked for */
#define AROUND 16              /* values next to each other that are looked at first */
#define RUNS_AHEAD 3           /* about how many runs later the end of a run is read */

/* rint(x): adding and taking away 1.5 * 2^52 rounds to an integer, without a library call. */
static double
nearest(double x)
{
    return fabs(x) < 0x1p51 ? (x + 0x1.8p52) - 0x1.8p52 : rint(x);
}

/* The same as an integer, for |x| < 2^51: it stands in the low bits of the sum, so that there is no
 * conversion either, and loops are vectorized.
 */
static inline int64_t
nearest_integer(double x)
{
    const double shift = 0x1.8p52;
    double shifted = x + shift;
    int64_t bits, zero;

    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&zero, &shift, sizeof zero);
    return bits - zero;
}

static inline int64_t
held(int64_t number, int64_t points)
{
    int64_t above = number < 0 ? 0 : number;

    return above >= points ? points - 1 : above;
}

/* Where positions are below 2^51. */
DPQ_VECTORIZED static void
encode_near(size_t n, const double *value, double low, double high, double per_unit, double step,
            int64_t first, int64_t points, int64_t *point)
{
    if (per_unit != 0.0) {
        for (size_t i = 0; i < n; i++) {
            double above = value[i] >= low ? value[i] : low; /* as below */
            double clamped = above <= high ? above : high;

            point[i] = held(nearest_integer(clamped * per_unit) - first, points);
        }
    }
    else {
        for (size_t i = 0; i < n; i++) {
            double above = value[i] >= low ? value[i] : low;
            double clamped = above <= high ? above : high;

            point[i] = held(nearest_integer(clamped / step) - first, points);
        }
    }
}

void
dpq_lattice_encode(size_t n, const double *value, double low, double high, double per_unit,
                   double step, int64_t first, int64_t points, int64_t *point)
{
    double farthest = fabs(low) > fabs(high) ? fabs(low) : fabs(high);

    if ((per_unit != 0.0 ? farthest * per_unit : farthest / step) < 0x1p51) {
        encode_near(n, value, low, high, per_unit, step, first, points, point);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        /* a NaN, where sortedness was promised and does not hold, becomes low: no wild cast */
        double clamped = value[i] >= low ? (value[i] <= high ? value[i] : high) : low;
        double position = per_unit != 0.0 ? clamped * per_unit : clamped / step;
        int64_t number = (int64_t)nearest(position) - first;

        point[i] = held(number, points);
    }
}

/* Counts of few points: those of every other value, which need not wait for the value before. */
typedef struct {
    int64_t *count, *other; /* the same where points are many */
    int64_t room[NEAR + 1];
} counters;

static void
begin(counters *c, int64_t points, int64_t *count)
{
    c->count = count;
    c->other = count;
    if (points <= NEAR) {
        c->other = c->room;
        memset(c->room, 0, sizeof c->room);
    }
}

/* Count a block that starts at `start`; what comes after the next one comes nearer. */
static void
add(counters *c, const dpq_column *column, size_t start, size_t n, size_t size,
    const int64_t *point)
{
    size_t i = 0, width = dpq_column_width(column);
    const char *ahead = dpq_column_ahead(column, start, n);

    for (; i + STEP <= size; i += STEP) {
        DPQ_PREFETCH_SECOND(ahead + i * width);
        for (size_t j = i; j < i + STEP; j += 2) {
            c->count[point[j]]++;
            c->other[point[j + 1]]++;
        }
    }
    for (; i < size; i++) {
        c->count[point[i]]++;
    }
}

static void
finish(counters *c, int64_t points)
{
    for (int64_t k = 0; c->other != c->count && k <= points; k++) {
        c->count[k] += c->room[k];
    }
}

DPQ_VECTORIZED static void
set_missing(size_t n, const double *value, int64_t points, int64_t *point)
{
    for (size_t i = 0; i < n; i++) {
        point[i] = value[i] == value[i] ? point[i] : points;
    }
}

/* Count each of the values that a byte has, and these by point. */
static void
count_bytes(size_t n, const dpq_column *column, double low, double high, double per_unit,
            double step, int64_t first, int64_t points, int64_t *count)
{
    const uint8_t *byte = column->value;
    uint8_t bytes[BYTES];
    double read[BYTES];
    int64_t seen[2][BYTES] = {{0}}, point[BYTES]; /* by turns, as in `add` */
    dpq_column each = {bytes, column->kind};
    size_t i = 0;

    for (; i + 2 <= n; i += 2) {
        seen[0][byte[i]]++;
        seen[1][byte[i + 1]]++;
    }
    for (; i < n; i++) {
        seen[0][byte[i]]++;
    }
    for (size_t b = 0; b < BYTES; b++) {
        bytes[b] = (uint8_t)b;
    }
    dpq_lattice_encode(BYTES, dpq_column_read(&each, 0, BYTES, read), low, high, per_unit, step,
                       first, points, point);
    for (size_t b = 0; b < BYTES; b++) {
        count[point[b]] += seen[0][b] + seen[1][b];
    }
}

void
dpq_lattice_count(size_t n, const dpq_column *column, double low, double high, double per_unit,
                  double step, int64_t first, int64_t points, int64_t *count)
{
    double read[BLOCK];
    int64_t point[BLOCK];
    counters c;

    if (dpq_column_width(column) == 1) {
        count_bytes(n, column, low, high, per_unit, step, first, points, count);
        return;
    }
    begin(&c, points, count);
    for (size_t start = 0, end; start < n; start = end) {
        size_t size = dpq_column_block(column, start, n, BLOCK);
        const double *value = dpq_column_read(column, start, size, read);

        end = start + size;
        dpq_lattice_encode(size, value, low, high, per_unit, step, first, points, point);
        set_missing(size, value, points, point);
        add(&c, column, start, n, size, point);
    }
    finish(&c, points);
}

DPQ_VECTORIZED static void
places_of(size_t n, const int64_t *value, int64_t first, int64_t last, int64_t *point)
{
    for (size_t i = 0; i < n; i++) {
        int64_t above = value[i] < first ? first : value[i];

        point[i] = (above > last ? last : above) - first;
    }
}

void
dpq_lattice_count_integers(size_t n, const dpq_column *column, int64_t first, int64_t points,
                           int64_t *count)
{
    int64_t read[BLOCK], point[BLOCK];
    counters c;

    begin(&c, points, count);
    for (size_t start = 0, end; start < n; start = end) {
        size_t size = dpq_column_block(column, start, n, BLOCK);
        const int64_t *value = dpq_column_integers(column, start, size, read);

        end = start + size;
        places_of(size, value, first, first + points - 1, point);
        add(&c, column, start, n, size, point);
    }
    finish(&c, points);
}

void
dpq_lattice_bisect(size_t asked, const dpq_column *column, double low, double high, double per_unit,
                   double step, int64_t first, int64_t points, const int64_t *point, int64_t *lo,
                   int64_t *hi)
{
    int64_t middle[TOGETHER], found[TOGETHER];
    double value[TOGETHER];

    for (size_t from = 0; from < asked; from += TOGETHER) {
        const size_t some = asked - from < TOGETHER ? asked - from : TOGETHER;
        size_t open = 0; /* one that goes on: those that are done look where it does */

        for (;;) {
            while (open < some && lo[from + open] >= hi[from + open]) {
                open++;
            }
            if (open == some) {
                break;
            }
            for (size_t k = some; k-- > 0;) {
                size_t i = from + (lo[from + k] < hi[from + k] ? k : open);

                middle[k] = lo[i] + (hi[i] - lo[i]) / 2;
            }
            dpq_column_at(column, some, middle, value);
            dpq_lattice_encode(some, value, low, high, per_unit, step, first, points, found);
            for (size_t k = 0; k < some; k++) {
                size_t i = from + k;
                int below = found[k] < point[i], going = lo[i] < hi[i];

                lo[i] = going && below ? middle[k] + 1 : lo[i];
                hi[i] = going && !below ? middle[k] : hi[i];
            }
        }
    }
}

/* A column with its lattice. */
typedef struct {
    const dpq_column *column;
    double low, high, per_unit, step;
    int64_t first, points;
} rounded;

static void
look_up(const rounded *r, size_t n, const int64_t *at, int64_t *point)
{
    double value[PROBES];

    dpq_column_at(r->column, n, at, value);
    dpq_lattice_encode(n, value, r->low, r->high, r->per_unit, r->step, r->first, r->points, point);
}

/* The first place from lo on, below hi, of a value at some point or above; hi if there is none. */
static int64_t
first_from(const rounded *r, int64_t point, int64_t lo, int64_t hi)
{
    const int64_t begin = lo;
    int64_t at[PROBES], found[PROBES];
    int apart = 0; /* first 0, 1, 3, 7, ... from where it began, then even shares of what is left */

    while (lo < hi) {
        size_t n = 0, below = 0;

        for (; n < PROBES; n++) {
            at[n] = apart < 0 ? lo + (hi - lo) / PROBES * (int64_t)n
                              : begin + (INT64_C(1) << (apart + (int)n)) - 1;
            if (at[n] >= hi || (n > 0 && at[n] == at[n - 1])) {
                break;
            }
        }
        if (n == 1 && apart < 0) { /* few are left: all of them */
            for (n = 0; n < PROBES && lo + (int64_t)n < hi; n++) {
                at[n] = lo + (int64_t)n;
            }
        }
        look_up(r, n, at, found);
        while (below < n && found[below] < point) {
            below++;
        }
        lo = below > 0 ? at[below - 1] + 1 : lo;
        hi = below < n ? at[below] : hi;
        apart = below == PROBES && apart >= 0 && apart + PROBES < 62 ? apart + PROBES : -1;
    }
    return lo;
}

/* The same if it is likely to be near hi, or hi. */
static int64_t
first_before(const rounded *r, int64_t point, int64_t lo, int64_t hi)
{
    const int64_t end = hi;
    int64_t at[PROBES], found[PROBES];

    for (int apart = 0; lo < hi && apart + PROBES < 62; apart += PROBES) { /* 1, 2, 4, ... before */
        size_t n = 0, from = 0;

        for (; n < PROBES && INT64_C(1) << (apart + (int)n) <= end - lo; n++) {
            at[n] = end - (INT64_C(1) << (apart + (int)n));
        }
        look_up(r, n, at, found);
        while (from < n && found[from] >= point) {
            from++;
        }
        hi = from > 0 ? at[from - 1] : hi;
        if (from < PROBES) {
            lo = from < n ? at[from] + 1 : lo;
            break;
        }
    }
    return first_from(r, point, lo, hi);
}

/* The same if it is likely to be near some place from lo to hi: few lines of memory are read. */
static int64_t
first_around(const rounded *r, int64_t point, int64_t lo, int64_t hi, int64_t near)
{
    const int64_t start = near - AROUND / 2 > lo ? near - AROUND / 2 : lo;
    const size_t n = hi - start < AROUND ? (size_t)(hi - start) : AROUND;
    double room[AROUND];
    int64_t found[AROUND];
    size_t below = 0;

    dpq_lattice_encode(n, dpq_column_read(r->column, (size_t)start, n, room), r->low, r->high, r->per_unit,
                       r->step, r->first, r->points, found);
    while (below < n && found[below] < point) {
        below++;
    }
    if (below == 0) {
        return first_before(r, point, lo, start);
    }
    return below < n ? start + (int64_t)below : first_from(r, point, start + (int64_t)n, hi);
}

/* About where values are at a point or above, between a place of one and a later one of another. */
static int64_t
about(const rounded *r, int64_t point, int64_t place, double from, int64_t later, double to)
{
    double share = (((double)(point + r->first) - 0.5) * r->step - from) / (to - from);

    share = share > 0.0 && share < 1.0 ? share : 0.5;
    return place + 1 + (int64_t)(share * (double)(later - place - 1));
}

/* The runs of `some` places, the first of which follows one at `before` if it is not the first of all. */
static void
runs_between(const rounded *r, size_t some, const int64_t *place, const double *value, double before,
             size_t is_first, const int64_t *point, int64_t *below, int64_t *above)
{
    const size_t width = dpq_column_width(r->column);
    int64_t near[BLOCK];

    for (size_t i = is_first; i < some; i++) {
        if (point[i] != point[i - 1]) {
            near[i] = about(r, point[i - 1] + 1, place[i - 1], i > 0 ? value[i - 1] : before, place[i],
                            value[i]);
            DPQ_PREFETCH((const char *)r->column->value + (size_t)near[i] * width);
        }
    }
    if (is_first) {
        below[0] = first_before(r, point[0], 0, place[0]);
    }
    for (size_t i = is_first; i < some; i++) {
        int64_t found = point[i], end;

        if (point[i] == point[i - 1]) {
            below[i] = below[i - 1];
            continue;
        }
        /* where one run ends; mostly the next one begins there */
        end = place[i];
        if (place[i - 1] + 1 < end) {
            end = first_around(r, point[i - 1] + 1, place[i - 1] + 1, end, near[i]);
        }
        if (end < place[i]) {
            look_up(r, 1, &end, &found);
        }
        below[i] = found == point[i] ? end : first_before(r, point[i], end + 1, place[i]);
        above[i - 1] = end;
    }
}

void
dpq_lattice_ties(size_t n, const dpq_column *column, double low, double high, double per_unit, double step,
                 int64_t first, int64_t points, size_t asked, const int64_t *place, int64_t *point,
                 int64_t *below, int64_t *above)
{
    const rounded r = {column, low, high, per_unit, step, first, points};
    double value[BLOCK], before = 0.0;

    for (size_t start = 0; start < asked; start += BLOCK) {
        const size_t some = asked - start < BLOCK ? asked - start : BLOCK;

        dpq_column_at(column, some, place + start, value);
        dpq_lattice_encode(some, value, low, high, per_unit, step, first, points, point + start);
        runs_between(&r, some, place + start, value, before, start == 0, point + start, below + start,
                     above + start);
        before = value[some - 1];
    }
    for (size_t i = asked; i-- > 0;) { /* known is the end of the last place of each run */
        if (i + 1 == asked) {
            above[i] = first_from(&r, point[i] + 1, place[i] + 1, (int64_t)n);
        }
        else if (point[i] == point[i + 1]) {
            above[i] = above[i + 1];
        }
    }
}

size_t
dpq_lattice_runs(size_t n, const dpq_column *column, double low, double high, double per_unit, double step,
                 int64_t first, int64_t points, const dpq_lattice_places *places, dpq_lattice_place *at,
                 size_t room, int64_t *point, int64_t *below, int64_t *above)
{
    const rounded r = {column, low, high, per_unit, step, first, points};
    const size_t width = dpq_column_width(column);
    const int64_t last = (int64_t)n - 1;
    size_t runs = 0;
    int64_t length = 0, near; /* a run is likely to be about as long as the one before it */

    while (runs < room && at->stretch < places->stretches) {
        const int64_t size = places->size[at->stretch], least = places->low[at->stretch];
        int64_t place = at->above > least ? at->above : least;

        place = (place + size - 1) / size * size;
        if (place >= places->high[at->stretch]) {
            at->stretch++;
            continue;
        }
        look_up(&r, 1, &place, point + runs);
        below[runs] = first_from(&r, point[runs], at->above, place);
        near = below[runs] + length < last ? below[runs] + length : last;
        at->above = above[runs] = first_around(&r, point[runs] + 1, place + 1, (int64_t)n, near);
        length = above[runs] - below[runs];
        if (length > AROUND && length < (last - above[runs]) / RUNS_AHEAD) {
            DPQ_PREFETCH((const char *)column->value + (size_t)(above[runs] + RUNS_AHEAD * length) * width);
        }
        runs++;
    }
    return runs;
}

void
dpq_lattice_decode(size_t n, const int64_t *point, double per_unit, double step, int64_t first,
                   double *value)
{
    for (size_t i = 0; i < n; i++) {
        double index = (double)(point[i] + first);

        value[i] = per_unit != 0.0 ? index / per_unit : index * step;
    }
}

/* The least number rounded to a point or above, of those from lower on, which is not, up to upper, which
 * is. It is almost always a few roundings from the middle: then little between them is left. */
static double
least_of(double low, double high, double per_unit, double step, int64_t first, int64_t points,
         int64_t number, double lower, double upper)
{
    double middle = lower + (upper - lower) / 2.0;
    double largest = fmax(fabs(lower), fabs(upper));
    double near = 4.0 * (nextafter(largest, INFINITY) - largest);
    double cuts[] = {fmin(middle + near, upper), fmax(middle - near, lower)};

    for (int i = 0;; i++) { /* bisection until they are next to each other */
        double cut = i < 2 ? cuts[i] : lower + (upper - lower) / 2.0;
        int64_t point;

        if (i >= 2 && !(cut > lower && cut < upper)) {
            return upper;
        }
        dpq_lattice_encode(1, &cut, low, high, per_unit, step, first, points, &point);
        if (point >= number) {
            upper = cut;
        }
        else {
            lower = cut;
        }
    }
}

void
dpq_lattice_least(size_t n, const int64_t *point, double low, double high, double per_unit,
                  double step, int64_t first, int64_t points, double *value)
{
    for (size_t i = 0; i < n; i++) {
        int64_t pair[2] = {point[i] - 1, point[i]};
        double at[2];

        if (point[i] <= 0 || point[i] >= points) {
            value[i] = point[i] > 0 ? INFINITY : -INFINITY;
        }
        else {
            dpq_lattice_decode(2, pair, per_unit, step, first, at);
            value[i] = least_of(low, high, per_unit, step, first, points, point[i], at[0], at[1]);
        }
    }
}

int
dpq_lattice_is_sorted(size_t n, const double *value)
{
    for (size_t start = 1; start < n; start += CHUNK) {
        size_t stop = n - start < CHUNK ? n : start + CHUNK;
        int sorted = 1;

        for (size_t i = start; i < stop; i++) {
            sorted &= value[i - 1] <= value[i];
        }
        if (!sorted) {
            return 0;
        }
    }
    return 1;
}

DPQ_VECTORIZED int
dpq_lattice_has_missing(size_t n, const double *value)
{
    int64_t missing = 0;

    for (size_t i = 0; i < n; i++) {
        missing += value[i] != value[i];
    }
    return missing > 0;
}
