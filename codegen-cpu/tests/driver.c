/* Runs a kernel of a shared library under an emulator: `driver LIBRARY KERNEL`.
   Standard input has, in 64-bit numbers, how many ids and how many buffers there are, then the ids, and each buffer behind
   its length in bytes. Standard output gets the buffers' bytes, one after another. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void take(void *to, size_t bytes) {
  if (fread(to, 1, bytes, stdin) != bytes)
    exit(2);
}

int main(int argc, char **argv) {
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  void (*kernel)(void *const *, const int64_t *) = library ? dlsym(library, argv[2]) : NULL;
  int64_t counts[2], ids[16], bytes[16];
  void *buffers[16];
  take(counts, sizeof counts);
  if (!kernel || counts[0] > 16 || counts[1] > 16)
    return 3;
  take(ids, counts[0] * sizeof *ids);
  for (int i = 0; i < counts[1]; i++) {
    take(&bytes[i], sizeof *bytes);
    buffers[i] = aligned_alloc(64, (bytes[i] + 63) / 64 * 64);
    take(buffers[i], bytes[i]);
  }
  kernel(buffers, ids);
  for (int i = 0; i < counts[1]; i++)
    fwrite(buffers[i], 1, bytes[i], stdout);
  return 0;
}
