/* Includes BODY once for each length of vectors, by these names:
 *
 *   LANES    numbers in a vector
 *   NAME(f)  f with the suffix of the length: _plain, and with DPQ_CLONES _v3 and _v4
 *   TARGET   the machine it is compiled for, put before each function
 *
 * Compilers keep vectors that are longer than the machine's in memory, not in registers, which is several
 * times as slow.
 *
 *   DPQ_LONGEST(f)  the version of f for the longest vectors that this machine has
 */
#ifdef DPQ_VECTORS
#define LANES 2
#else
#define LANES 1
#endif
#define NAME(f) f##_plain
#define TARGET
#include BODY
#undef LANES
#undef NAME
#undef TARGET

#ifdef DPQ_CLONES
#define LANES 4
#define NAME(f) f##_v3
#define TARGET __attribute__((target("arch=x86-64-v3")))
#include BODY
#undef LANES
#undef NAME
#undef TARGET

#define LANES 8
#define NAME(f) f##_v4
#define TARGET __attribute__((target("arch=x86-64-v4")))
#include BODY
#undef LANES
#undef NAME
#undef TARGET
#endif

#undef DPQ_LONGEST
#ifdef DPQ_CLONES
#define DPQ_LONGEST(f) \
    (__builtin_cpu_supports("x86-64-v4")   ? f##_v4 \
     : __builtin_cpu_supports("x86-64-v3") ? f##_v3 \
                                           : f##_plain)
#else
#define DPQ_LONGEST(f) f##_plain
#endif
