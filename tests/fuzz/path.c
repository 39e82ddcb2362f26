#include "path.h"

#include "fuzz.h"
#include "problem.h"
#include "uniform.h"

#define FEW_INTERVALS 6 /* so few that all paths can be looked at */
#define FEW_LEVELS 3
#define SOME_INTERVALS 80 /* all paths of two levels */
#define DRAWS 1024
#define UNLIKELY 40.0L /* ln of how improbable frequencies have to be to be wrong */
#define VAGUE 1e12L    /* losses whose differences have 1e-7 of rounding, in long double */
#define MOST_POINTS 12 /* of a sequence */

/* ln of the weight of a path, by definition: what the targets lose, and the measure inside. */
static long double
log_weight(const dpq_scan_problem *p, const size_t *path)
{
    long double loss = fabsl(fuzz_above(p, p->rank[path[0]], 0)), measure = 0.0L;
    size_t copies = 0;

    for (size_t j = 0; j < p->levels; j++) {
        if (j > 0) {
            loss += fabsl((long double)(p->rank[path[j]] - p->rank[path[j - 1]]) - fuzz_gap(p, j));
        }
        copies = j > 0 && path[j] == path[j - 1] ? copies + 1 : 1;
        measure += fuzz_log_factor(p, path[j], copies);
    }
    loss += fabsl(fuzz_above(p, p->rank[path[p->levels - 1]], p->levels - 1));
    return measure - (long double)p->rate / 2.0L * loss;
}

static int
is_path(const dpq_scan_problem *p, const size_t *path)
{
    int fine = 1;

    for (size_t j = 0; j < p->levels; j++) {
        fine &= path[j] >= p->lo[j] && path[j] < p->hi[j] && (j == 0 || path[j] >= path[j - 1]);
    }
    return fine;
}

/* The next sequence of numbers below n; 0 after the last. */
static int
count_up(size_t m, size_t n, size_t *path)
{
    for (size_t j = 0; j < m; j++) {
        if (++path[j] < n) {
            return 1;
        }
        path[j] = 0;
    }
    return 0;
}

/* Whether so many of all draws are plausible (Chernoff's bound). */
static int
plausible(size_t times, size_t draws, long double log_p)
{
    long double share = (long double)times / (long double)draws, unlikely = 0.0L;

    if (times > 0) {
        unlikely += (long double)times * (logl(share) - log_p);
    }
    if (times < draws) {
        unlikely += (long double)(draws - times) * (log1pl(-share) - log1pl(-expl(log_p)));
    }
    return unlikely <= UNLIKELY;
}

/* How often each path, and each interval at each level, was drawn, against their probabilities. */
static void
check_law(const dpq_scan_problem *p, size_t draws, const size_t *drawn, double log_escape)
{
    size_t m = p->levels, n = p->intervals, path[FEW_LEVELS] = {0}, all = 0, escaped = 0;
    long double *log_weights = fuzz_room(n * n * (n <= FEW_INTERVALS ? n : 1), sizeof *log_weights);
    long double *share = calloc(m * n, sizeof *share), total, stay = log1pl(-expl(log_escape));

    CHECK(share != NULL);
    do {
        if (is_path(p, path)) {
            log_weights[all++] = log_weight(p, path);
        }
    } while (count_up(m, n, path));
    total = fuzz_log_sum(all, log_weights);
    all = 0;
    do {
        if (is_path(p, path)) {
            long double log_p = fminl(log_weights[all++] - total, 0.0L);
            size_t times = 0;

            for (size_t j = 0; j < m; j++) {
                share[j * n + path[j]] += expl(log_p);
            }
            for (size_t i = 0; i < draws && n <= FEW_INTERVALS; i++) {
                times += memcmp(drawn + i * m, path, m * sizeof *path) == 0;
            }
            CHECK(n > FEW_INTERVALS || plausible(times, draws, log_p + stay));
        }
    } while (count_up(m, n, path));
    for (size_t j = 0; j < m; j++) {
        for (size_t t = 0; t < n; t++) {
            size_t times = 0;

            for (size_t i = 0; i < draws; i++) {
                times += drawn[i * m + j] == t;
            }
            CHECK(plausible(times, draws, logl(fminl(share[j * n + t], 1.0L)) + stay));
        }
    }
    for (size_t i = 0; i < draws; i++) {
        escaped += drawn[i * m] == n;
    }
    CHECK(plausible(escaped, draws, log_escape));
    free(share);
    free(log_weights);
}

static void
check_draws(const fuzz_problem *problem, const dpq_decay *decay, const dpq_path_rows *rows,
            double log_escape, fuzz_input *in)
{
    const dpq_scan_problem *p = &problem->p;
    int few = (p->intervals <= FEW_INTERVALS && p->levels <= FEW_LEVELS) ||
              (p->intervals <= SOME_INTERVALS && p->levels <= 2);
    fuzz_input random = {NULL, 0, fuzz_bytes(in, 4)}; /* words that fuzzing cannot choose */
    int many = few && fuzz_between(in, 0, 7) == 0;
    bitgen_t rng = fuzz_generator(many ? &random : in);
    size_t m = p->levels, size = many ? DRAWS : (size_t)fuzz_between(in, 0, 4), escaped = 0, found;
    double *work = fuzz_room(problem->longest + problem->longest / DPQ_PATH_BLOCK + m + 2,
                             sizeof *work);
    size_t *path = fuzz_room(size * m, sizeof *path);

    dpq_path_draw(p, decay, rows, log_escape, size, &rng, work, path, &found);
    for (size_t i = 0; i < size; i++) {
        if (path[i * m] == p->intervals) {
            for (size_t j = 0; j < m; j++) {
                CHECK(path[i * m + j] == p->intervals);
            }
            escaped++;
        }
        else {
            CHECK(is_path(p, path + i * m));
        }
    }
    CHECK(found == escaped && (log_escape > -INFINITY || escaped == 0) &&
          (log_escape < 0.0 || escaped == size));
    if (many && (long double)p->rate * problem->spread < VAGUE) {
        check_law(p, size, path, log_escape);
    }
    if (size > 0) { /* a draw that stops and goes on is the same */
        fuzz_input words = {NULL, 0, fuzz_bytes(in, 4)}, same = words;
        bitgen_t once = fuzz_generator(&words), twice = fuzz_generator(&same);
        size_t *parted = fuzz_room(m, sizeof *parted), first = (size_t)fuzz_between(in, 0, (int64_t)m);
        size_t left = dpq_path_go_on(p, decay, rows, first, m, &twice, work, parted);

        CHECK(left <= first && dpq_path_go_on(p, decay, rows, 0, left, &twice, work, parted) == 0);
        dpq_path_draw(p, decay, rows, -INFINITY, 1, &once, work, path, &found);
        CHECK(found == 0 && memcmp(parted, path, m * sizeof *path) == 0);
        free(parted);
    }
    free(path);
    free(work);
}

static void
check_paths(fuzz_input *in)
{
    int64_t kind = fuzz_between(in, 0, 7);
    fuzz_problem problem = kind > 3   ? fuzz_draw_problem(in, FEW_INTERVALS, FEW_LEVELS)
                           : kind > 1 ? fuzz_draw_problem(in, 40, 12)
                           : kind > 0 ? fuzz_draw_problem(in, SOME_INTERVALS, 2)
                                      : fuzz_draw_problem(in, 400, 6);
    const dpq_scan_problem *p = &problem.p;
    size_t entries = problem.entries;
    double *A = fuzz_room(entries, sizeof *A), *H = fuzz_room(entries, sizeof *H), log_total;
    double *work = fuzz_room(problem.longest, sizeof *work);
    double log_escape = fuzz_bit(in) ? -INFINITY : -(double)fuzz_between(in, 0, 100) / 16.0;
    dpq_large *large_work = fuzz_room(3 * problem.longest, sizeof *large_work);
    int64_t *exponent = fuzz_room(p->levels, sizeof *exponent);
    dpq_decay *decay = fuzz_room(1, sizeof *decay);
    dpq_scan_level *level = fuzz_room(p->levels, sizeof *level);

    if (dpq_scan_forward(p, decay, level, 0, A, H, exponent, work, &log_total) == DPQ_OK) {
        check_draws(&problem, decay, &(dpq_path_rows){.A = A, .H = H, .exponent = exponent},
                    log_escape, in);
    }
    for (int alone = 0; alone < 2; alone++) {
        dpq_scan_blocks blocks = fuzz_make_blocks(p, alone);

        if (dpq_scan_forward_blocks(p, decay, level, 0, &blocks, A, H, large_work, &log_total) ==
            DPQ_OK) {
            check_draws(&problem, decay, &(dpq_path_rows){.A = A, .H = H, .blocks = blocks},
                        log_escape, in);
        }
        fuzz_free_blocks(&blocks);
    }
    free(level);
    free(decay);
    free(exponent);
    free(large_work);
    free(work);
    free(H);
    free(A);
    fuzz_free_problem(&problem);
}

/* A multiset of k of 0, ..., w - 1 by Floyd's algorithm, with a search for each. */
static void
plain_multiset(size_t k, uint64_t w, bitgen_t *rng, int64_t *drawn)
{
    for (size_t i = 0; i < k; i++) {
        int64_t value = (int64_t)dpq_uniform_below(w + i, rng);

        drawn[i] = value;
        for (size_t b = 0; b < i; b++) {
            if (drawn[b] == value) {
                drawn[i] = (int64_t)(w + i - 1);
            }
        }
    }
    qsort(drawn, k, sizeof *drawn, fuzz_compare_integers);
    for (size_t i = 0; i < k; i++) {
        drawn[i] -= (int64_t)i;
    }
}

/* The number of outputs in the same interval, from j on. */
static size_t
run_of(size_t m, const size_t *path, size_t j)
{
    size_t k = 1;

    while (j + k < m && path[j + k] == path[j]) {
        k++;
    }
    return k;
}

static void
check_points_lattice(size_t m, size_t size, const size_t *path, size_t n, fuzz_input *in)
{
    int64_t *left = fuzz_room(n, sizeof *left), *point = fuzz_room(size * m, sizeof *point);
    int64_t expected[MOST_POINTS];
    double *width = fuzz_room(n, sizeof *width);
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);

    for (size_t t = 0; t < n; t++) {
        int64_t most = fuzz_bit(in) ? 8 : INT64_C(1) << 53;

        left[t] = fuzz_bit(in) ? -1 : fuzz_between(in, -MOST_RANK, MOST_RANK);
        width[t] = (double)fuzz_between(in, 1, most);
    }
    same = *in;
    dpq_path_points_lattice(m, size, path, left, width, &rng, point);
    for (size_t i = 0; i < size; i++) {
        for (size_t j = 0, k; j < m; j += k) {
            size_t t = path[i * m + j];

            k = run_of(m, path + i * m, j);
            plain_multiset(k, (uint64_t)width[t], &again, expected);
            for (size_t b = 0; b < k; b++) {
                int64_t got = point[i * m + j + b];

                CHECK(got - left[t] - 1 == expected[b]);
                CHECK(got > left[t] && got - left[t] <= (int64_t)width[t]);
            }
        }
    }
    free(width);
    free(point);
    free(left);
}

static void
check_points_continuous(size_t m, size_t size, const size_t *path, size_t n, fuzz_input *in)
{
    double *left = fuzz_room(n, sizeof *left), *width = fuzz_room(n, sizeof *width);
    double *point = fuzz_room(size * m, sizeof *point), expected[MOST_POINTS];
    fuzz_input same;
    bitgen_t rng = fuzz_generator(in), again = fuzz_generator(&same);

    for (size_t t = 0; t < n; t++) {
        left[t] = fuzz_finite(in);
        width[t] = fuzz_positive(in);
        if (!isfinite(left[t] + width[t])) {
            left[t] = -left[t];
        }
    }
    same = *in;
    dpq_path_points_continuous(m, size, path, left, width, &rng, point);
    for (size_t i = 0; i < size; i++) {
        for (size_t j = 0, k; j < m; j += k) {
            size_t t = path[i * m + j];

            k = run_of(m, path + i * m, j);
            for (size_t b = 0; b < k; b++) {
                expected[b] = left[t] + width[t] * dpq_uniform_unit(&again);
            }
            qsort(expected, k, sizeof *expected, fuzz_compare_numbers);
            for (size_t b = 0; b < k; b++) {
                double got = point[i * m + j + b];

                CHECK(got == expected[b] && got >= left[t] && got <= left[t] + width[t]);
            }
        }
    }
    free(point);
    free(width);
    free(left);
}

static void
check_points(fuzz_input *in)
{
    size_t n = (size_t)fuzz_between(in, 1, 5), m = (size_t)fuzz_between(in, 1, MOST_POINTS);
    size_t size = (size_t)fuzz_between(in, 0, 3);
    size_t *path = fuzz_room(size * m, sizeof *path);

    for (size_t i = 0; i < size * m; i++) {
        size_t least = i % m > 0 ? path[i - 1] : 0;

        path[i] = least;
        if (fuzz_bit(in)) {
            path[i] += (size_t)fuzz_between(in, 0, (int64_t)(n - 1 - least));
        }
    }
    check_points_lattice(m, size, path, n, in);
    check_points_continuous(m, size, path, n, in);
    free(path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size, 1};

    check_points(&in);
    check_paths(&in);
    return 0;
}
