#include "world/process/bell.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* A loud ring counts more than any waiter may ask for, so it ends every wait, even when it comes
 * between reading the counter and setting wake_at. */
enum { LOUD = 2 * AT_BELL_RINGS_MAX };

/* Not the private variants: the word is shared between processes. Sequentially consistent on both
 * sides: the ringer sees the sleeper, or the sleeper sees the ring. */
static void wake(at_bell *bell, uint32_t mask)
{
    assert(mask != 0);
    if (atomic_load(&bell->sleepers) == 0) return; /* one that spins sees the ring */
    syscall(SYS_futex, &bell->rings, FUTEX_WAKE_BITSET, INT32_MAX, NULL, NULL, mask);
}

static bool futex_wait(_Atomic uint32_t *word, uint32_t value, uint32_t mask, at_ns until)
{
    struct timespec  t = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    struct timespec *limit = until == AT_NEVER ? NULL : &t;
    assert(until >= 0);
    assert(mask != 0);
    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, limit, NULL, mask) < 0 &&
           errno == EINTR;
}

uint32_t at_bell_heard(at_bell *bell)
{
    assert(bell);
    return atomic_load(&bell->rings);
}

static bool reached(uint32_t rings, uint32_t wanted) /* correct across wrap-around */
{
    return (int32_t)(rings - wanted) >= 0;
}

/* Counted from 1; 0: unknown. Takes a few nanoseconds. */
static uint32_t this_core(void)
{
    int core = sched_getcpu();
    return core < 0 ? 0 : (uint32_t)core + 1;
}

void at_bell_ring(at_bell *bell)
{
    assert(bell);
    atomic_store_explicit(&bell->ringer, this_core(), memory_order_relaxed);
    uint32_t rings = atomic_fetch_add(&bell->rings, 1) + 1;
    if (reached(rings, atomic_load(&bell->wake_at))) wake(bell, AT_BELL_ALL);
}

void at_bell_ring_loud(at_bell *bell, uint32_t mask)
{
    assert(mask != 0);
    atomic_store_explicit(&bell->ringer, this_core(), memory_order_relaxed);
    atomic_fetch_add(&bell->rings, LOUD);
    wake(bell, mask);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* The scheduler tends to place processes that wake each other on one core. Spinning there keeps the
 * other process from ringing, while sleeping hands the core over at once. */
static bool may_spin(const at_bell *bell)
{
    uint32_t ringer = atomic_load_explicit(&bell->ringer, memory_order_relaxed);
    assert(bell);
    return ringer == 0 || ringer != this_core();
}

static bool spin(at_bell *bell, uint32_t wanted, at_ns until)
{
    assert(until > 0);
    do {
        for (int i = 0; i < 32; i++) {
            if (reached(atomic_load_explicit(&bell->rings, memory_order_acquire), wanted))
                return true;
            relax();
        }
    } while (at_clock_now() < until && may_spin(bell));
    return false;
}

bool at_bell_wait(at_bell *bell, uint32_t heard, uint32_t rings, uint32_t mask, at_ns until,
                  at_ns spin_ns)
{
    assert(rings >= 1);
    assert(rings < LOUD);
    uint32_t wanted = heard + rings;
    /* Sequentially consistent on both sides: the ringer sees our wake_at, or we see its ring. */
    atomic_store(&bell->wake_at, wanted);
    if (spin_ns > 0 && may_spin(bell) && spin(bell, wanted, at_clock_now() + spin_ns)) return false;
    atomic_fetch_add(&bell->sleepers, 1);
    uint32_t now = atomic_load(&bell->rings);
    bool     interrupted = !reached(now, wanted) && futex_wait(&bell->rings, now, mask, until);
    atomic_fetch_sub(&bell->sleepers, 1);
    return interrupted;
}
