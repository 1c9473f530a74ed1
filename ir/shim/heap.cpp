// The heap of the C library as it grows. Every function is documented where Rust declares it.
#include <cstdint>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

extern "C" {

void *monopour_shim_heap_end() {
#if defined(__linux__)
  return sbrk(0);
#else
  return nullptr;
#endif
}

void monopour_shim_populate(void *from, void *to) {
#if defined(__linux__)
  // Linux 5.14; its number, because older headers lack the name. Older kernels refuse it.
  constexpr int populateWrite = 23;
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t begin = (reinterpret_cast<uintptr_t>(from) + page - 1) / page * page;
  uintptr_t end = reinterpret_cast<uintptr_t>(to) / page * page;
  // Advice: what cannot be had now is had when it is touched.
  if (begin < end) (void)madvise(reinterpret_cast<void *>(begin), end - begin, populateWrite);
#endif
}
}
