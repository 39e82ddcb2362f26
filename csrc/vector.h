/* Wider vectors where the machine has them, chosen when the library is loaded.
 *
 * Put before a function whose loops the compiler vectorizes. Products and sums are not contracted,
 * so every version gives the same bits.
 */
#ifndef DPQ_VECTOR_H
#define DPQ_VECTOR_H

#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__)
#define DPQ_VECTORIZED \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DPQ_VECTORIZED
#endif

/* Ask for memory that will be read soon; any address is allowed. */
#if defined(__GNUC__)
#define DPQ_PREFETCH(address) __builtin_prefetch(address)
#else
#define DPQ_PREFETCH(address) ((void)(address))
#endif

#endif
