/* Wider vectors where the machine has them, chosen when the library is loaded.
 *
 * DPQ_VECTORIZED is put before a function whose loops the compiler vectorizes. With DPQ_CLONES
 * there may also be functions with a target attribute of their own, and __builtin_cpu_supports() to
 * choose. Products and sums are not contracted, so every version gives the same bits. DPQ_PORTABLE
 * asks for C11 alone, here and wherever something else is used, for tests.
 */
#ifndef DPQ_VECTOR_H
#define DPQ_VECTOR_H

#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(DPQ_PORTABLE)
#define DPQ_CLONES
#define DPQ_VECTORIZED \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DPQ_VECTORIZED
#endif

/* Whether there are types of vectors, with the operators of numbers: the compiler makes several
 * instructions of one where the machine's vectors are shorter. Where there are none, a vector is
 * one number, and the same code serves. Its types have these names:
 *
 *   typedef double numbers DPQ_VECTOR(lanes);
 *   typedef int64_t truths DPQ_VECTOR(lanes);  what a comparison of numbers is
 *   typedef numbers stored DPQ_STORED;         a vector in an array of its numbers
 *
 *   DPQ_LANE(x, i)          entry i of a vector
 *   DPQ_PICK(truth, a, b)   numbers of a where there is truth, of b elsewhere
 */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(DPQ_PORTABLE)
#define DPQ_VECTORS
#define DPQ_VECTOR(lanes) __attribute__((vector_size(8 * (lanes))))
#define DPQ_STORED __attribute__((aligned(4), may_alias))
#define DPQ_LANE(x, i) ((x)[i])
#define DPQ_PICK(truth, a, b) ((numbers)(((truths)(a) & (truth)) | ((truths)(b) & ~(truth))))
#else
#define DPQ_VECTOR(lanes)
#define DPQ_STORED
#define DPQ_LANE(x, i) (x)
#define DPQ_PICK(truth, a, b) ((truth) ? (a) : (b))
#endif

/* Ask for memory that will be read soon; any address is allowed. DPQ_PREFETCH_SECOND asks for it no
 * nearer than the second cache, where the first one is full of what is written meanwhile.
 */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(DPQ_PORTABLE)
#define DPQ_PREFETCH(address) __builtin_prefetch(address)
#define DPQ_PREFETCH_SECOND(address) __builtin_prefetch(address, 0, 2)
#else
#define DPQ_PREFETCH(address) ((void)(address))
#define DPQ_PREFETCH_SECOND(address) ((void)(address))
#endif

#endif
