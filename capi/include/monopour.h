/* monopour: runs compiled tensor programs (.mpr) on GPUs and CPUs.

   Made from capi/src by `BLESS=1 cargo test -p monopour-capi`; do not edit.

   Every function that can fail returns a status: 0, or the number of an error code. R0019 is 19, P0004 is 1004; 2001 to 2003
   are those of this interface, below. `monopour_last_error` tells more. No function unwinds or throws.
   Objects are made by functions with an `out` argument and freed by their `_free`, which takes null too. Any thread
   may use any object, but for freeing it; calls of one session run one at a time. The device is one that this library
   opens: those of wgpu-native belong to another copy of wgpu, and cannot be handed over.
   Structs begin with their size, `sizeof` of the caller: later versions add members at the end. */

#ifndef MONOPOUR_H
#define MONOPOUR_H

#include <stddef.h>
#include <stdint.h>

// The version of this interface: it grows when functions or members are added.
#define MONOPOUR_ABI_VERSION 2

// The host function as native code where the program is trusted and was compiled for this architecture, else as data.
#define MONOPOUR_HOST_AUTO 0

// The host function as native code.
#define MONOPOUR_HOST_NATIVE 1

// The host function as data.
#define MONOPOUR_HOST_DATA 2

// No limit for a wait.
#define MONOPOUR_FOREVER UINT64_MAX

// Success.
#define MONOPOUR_OK 0

// Added to the number of a P code.
#define MONOPOUR_P 1000

// An argument is null, out of range, or a text that is not UTF-8.
#define MONOPOUR_ARGUMENT 2001

// A struct's size is less than that of its first version.
#define MONOPOUR_STRUCT_SIZE 2002

// A defect of the library: please report it.
#define MONOPOUR_PANIC 2003

// A device.
typedef struct monopour_device monopour_device;

// A program on a device: kernels are built and constants are there once, for any number of sessions on any threads.
typedef struct monopour_model monopour_model;

// A compiled program: an artifact (`.mpr`).
typedef struct monopour_program monopour_program;

// The results of a run.
typedef struct monopour_results monopour_results;

// A run that was submitted.
typedef struct monopour_run monopour_run;

// A model with the memory of its runs. Threads may share it: one call runs at a time.
typedef struct monopour_session monopour_session;

// Threads of the application, for the tasks of the CPU device. The thread that runs a program computes too, and waits
// only for tasks that another one has begun: a pool that is busy costs time and nothing else.
typedef struct monopour_pool {
  // `sizeof(monopour_pool)`.
  size_t size;
  // The most threads that compute at once, that of the run among them.
  size_t threads;
  // Passed to `share`. It lives as long as the models and sessions that have it.
  void *context;
  // Has `work(job)` called `others` times, each on another thread, at once or later, and returns without waiting for
  // them. Called by any thread that runs a session. A call that never comes is a leak of some bytes.
  void (*share)(void *context, size_t others, void (*work)(void *job), void *job);
} monopour_pool;

// Options of a session; 0 is the default of each.
typedef struct monopour_options {
  // `sizeof(monopour_options)`.
  size_t size;
  // Threads of the CPU device; 0: one per core.
  size_t threads;
  // The most bytes to take from the device; 0: no limit.
  uint64_t memory_limit;
  // The most steps of an interpreted host function in one run; 0: none for a trusted program.
  uint64_t host_steps;
  // The form of the host function: one of `MONOPOUR_HOST_...`.
  int32_t host;
  // Threads of the application for the CPU device, or null; `threads` then does not count. Since version 2.
  const struct monopour_pool *pool;
} monopour_options;

// An input or a result. Its texts and sizes live as long as the program.
typedef struct monopour_tensor_info {
  // `sizeof(monopour_tensor_info)`.
  size_t size;
  // Its name.
  const char *name;
  // Its element type: `f32`, `i64`, `bf16`, `ui8`, `i1` (a byte, 0 or 1), `index` (as i64), ...
  const char *dtype;
  // Number of its dimensions; 0 for a single element, and for a number.
  size_t rank;
  // Its sizes; UINT64_MAX for one that varies by run.
  const uint64_t *shape;
  // 1 if the program may overwrite it.
  uint8_t is_donated;
  // 1 if it is a number rather than a tensor.
  uint8_t is_scalar;
} monopour_tensor_info;

// A tensor in the memory of the host: row-major, contiguous, little endian.
typedef struct monopour_tensor {
  // `sizeof(monopour_tensor)`.
  size_t size;
  // Its element type, as in `monopour_tensor_info`.
  const char *dtype;
  // Number of its dimensions.
  size_t rank;
  // Its sizes.
  const uint64_t *shape;
  // Its elements.
  const uint8_t *data;
  // Bytes of its elements.
  size_t bytes;
} monopour_tensor;

// Memory of the caller for a result: row-major, contiguous, little endian. It overlaps neither another place nor an
// input.
typedef struct monopour_place {
  // `sizeof(monopour_place)`.
  size_t size;
  // Where the elements go.
  uint8_t *data;
  // In: bytes that fit there; what the result does not need stays as it is. Out: bytes of the result.
  size_t bytes;
  // Where the sizes of the dimensions go, or null.
  uint64_t *shape;
  // In: sizes that fit there. Out: dimensions of the result.
  size_t rank;
} monopour_place;

// An error with its texts, which live until the next call of a function that can fail on this thread.
typedef struct monopour_error {
  // `sizeof(monopour_error)`.
  size_t size;
  // The status that the function returned.
  int32_t status;
  // The code, such as `R0019`; of this interface's own errors, empty.
  const char *code;
  // What is wrong.
  const char *message;
  // What to do about it; may be empty.
  const char *help;
} monopour_error;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The [`MONOPOUR_ABI_VERSION`] of the library, which may be newer than that of the header.
uint32_t monopour_abi_version(void);

// Opens a device: `auto` (the best hardware GPU, else the CPU), `gpu`, `cpu`, an index or a name.
//
// # Safety
// `choice` ends with a zero; `out` is writable.
int32_t monopour_device_open(const char *choice, struct monopour_device **out);

// The name of a device, as long as it lives; null of null.
//
// # Safety
// `device` is null or a device.
const char *monopour_device_name(const struct monopour_device *device);

// Frees a device. Its sessions go on.
//
// # Safety
// `device` is null, or a device that was not freed.
void monopour_device_free(struct monopour_device *device);

// Loads a program on a device. Of the options, which may be null, the form of the host function counts, and the limit
// of bytes, for the model with all of its sessions. The model keeps what it needs of both.
//
// # Safety
// `device` and `program` are a device and a program; `options` is null or a `monopour_options` whose `size` is set;
// `out` is writable.
int32_t monopour_model_load(const struct monopour_device *device,
                            const struct monopour_program *program,
                            const struct monopour_options *options,
                            struct monopour_model **out);

// Bytes that the model and all of its sessions hold on the device; 0 of null.
//
// # Safety
// `model` is null or a model.
uint64_t monopour_model_used_bytes(const struct monopour_model *model);

// Frees a model. Its sessions go on.
//
// # Safety
// `model` is null, or a model that was not freed.
void monopour_model_free(struct monopour_model *model);

// Opens an artifact; its constants stay in the mapped file. It is not trusted.
//
// # Safety
// `path` ends with a zero; `out` is writable. No one changes the file while the program lives.
int32_t monopour_program_open(const char *path, struct monopour_program **out);

// Decodes an artifact in memory, which is copied. It is not trusted.
//
// # Safety
// `bytes` points to `len` bytes; `out` is writable.
int32_t monopour_program_decode(const uint8_t *bytes, size_t len, struct monopour_program **out);

// Vouches for a program: its native code may run in this process, and its SPIR-V goes to the driver unchecked. Without it a
// program runs on GPUs only. Call it for files that you know the origin of, before sessions are loaded.
//
// # Safety
// The file was written by monopour, and by no one else since; no other thread uses the program meanwhile.
int32_t monopour_program_trust(struct monopour_program *program);

// 1 if someone vouched for the program, else 0.
//
// # Safety
// `program` is null or a program.
int32_t monopour_program_is_trusted(const struct monopour_program *program);

// Number of inputs; 0 of null.
//
// # Safety
// `program` is null or a program.
size_t monopour_program_inputs(const struct monopour_program *program);

// Number of results; 0 of null.
//
// # Safety
// `program` is null or a program.
size_t monopour_program_results(const struct monopour_program *program);

// Describes an input.
//
// # Safety
// `program` is a program; `out` is a `monopour_tensor_info` whose `size` is set.
int32_t monopour_program_input(const struct monopour_program *program,
                               size_t index,
                               struct monopour_tensor_info *out);

// Describes a result.
//
// # Safety
// `program` is a program; `out` is a `monopour_tensor_info` whose `size` is set.
int32_t monopour_program_result(const struct monopour_program *program,
                                size_t index,
                                struct monopour_tensor_info *out);

// Frees a program. Its sessions go on.
//
// # Safety
// `program` is null, or a program that was not freed.
void monopour_program_free(struct monopour_program *program);

// Hands a run to a thread of the session, and returns once the inputs are copied. Runs of a session run in order, on a
// GPU with the next one recorded meanwhile.
//
// # Safety
// `session` is a session; `inputs` points to `inputs_len` tensors whose `size` is set and whose pointers hold what
// they say; `out` is writable.
int32_t monopour_session_submit(const struct monopour_session *session,
                                const struct monopour_tensor *inputs,
                                size_t inputs_len,
                                struct monopour_run **out);

// As `monopour_session_submit`, for a run that is spread over time: it makes no dispatch but those that
// `monopour_run_advance` allows. The next call of the session, or a wait for the run, lets it go on to its end.
//
// # Safety
// As `monopour_session_submit`.
int32_t monopour_session_begin(const struct monopour_session *session,
                               const struct monopour_tensor *inputs,
                               size_t inputs_len,
                               struct monopour_run **out);

// Lets a run that was begun make `dispatches` more, and returns when the device has them; on a CPU, when they are
// done. Returns 1 if some may be left, else 0: `monopour_run_wait` is next, for errors too. 0 of null.
//
// # Safety
// `run` is null or a run.
int32_t monopour_run_advance(const struct monopour_run *run,
                             uint64_t dispatches);

// Waits for the results, `timeout_ms` milliseconds at most (`MONOPOUR_FOREVER`: without a limit), after which it
// returns 24 (R0024) and the run goes on. Results can be taken once. 25 (R0025) after `monopour_run_cancel`.
//
// # Safety
// `run` is a run; `out` is writable.
int32_t monopour_run_wait(const struct monopour_run *run,
                          uint64_t timeout_ms,
                          struct monopour_results **out);

// 1 if a wait would return at once, else 0; 0 of null.
//
// # Safety
// `run` is null or a run.
int32_t monopour_run_is_done(const struct monopour_run *run);

// Ends a run, and returns at once: on a CPU the tasks that run are the last ones; on a GPU what was submitted runs to
// its end, and its results are dropped.
//
// # Safety
// `run` is null or a run.
void monopour_run_cancel(const struct monopour_run *run);

// Frees a run, which goes on to its end.
//
// # Safety
// `run` is null, or a run that was not freed and that no other thread uses.
void monopour_run_free(struct monopour_run *run);

// Loads a program on a device, as a model of its own. `options` may be null. The session keeps what it needs of both.
//
// # Safety
// `device` and `program` are a device and a program; `options` is null or a `monopour_options` whose `size` is set;
// `out` is writable.
int32_t monopour_session_load(const struct monopour_device *device,
                              const struct monopour_program *program,
                              const struct monopour_options *options,
                              struct monopour_session **out);

// A further session of a model, which it shares kernels and constants with. Of the options, which may be null, the
// form of the host function is the model's, and the limit of bytes is of this session alone.
//
// # Safety
// `model` is a model; `options` is null or a `monopour_options` whose `size` is set; `out` is writable.
int32_t monopour_session_new(const struct monopour_model *model,
                             const struct monopour_options *options,
                             struct monopour_session **out);

// Runs the program on its inputs, in their order, and waits for the results.
//
// # Safety
// `session` is a session; `inputs` points to `inputs_len` tensors whose `size` is set and whose pointers hold what
// they say; `out` is writable.
int32_t monopour_session_run(const struct monopour_session *session,
                             const struct monopour_tensor *inputs,
                             size_t inputs_len,
                             struct monopour_results **out);

// As `monopour_session_run`, with each result in memory of the caller: the places are in the order of the results.
//
// # Safety
// As `monopour_session_run`; `places` points to `places_len` places whose `size` is set, and whose pointers are null
// or point to as much as they say, which no one else reads or writes meanwhile.
int32_t monopour_session_run_into(const struct monopour_session *session,
                                  const struct monopour_tensor *inputs,
                                  size_t inputs_len,
                                  struct monopour_place *places,
                                  size_t places_len);

// Frees a session. Its runs go on.
//
// # Safety
// `session` is null, or a session that was not freed.
void monopour_session_free(struct monopour_session *session);

// The last error of this thread. Until a call fails, its status is 0 and its texts are empty.
//
// # Safety
// `out` is a `monopour_error` whose `size` is set.
int32_t monopour_last_error(struct monopour_error *out);

// Number of results; 0 of null.
//
// # Safety
// `results` is null or the results of a run.
size_t monopour_results_len(const struct monopour_results *results);

// A result, whose memory lives as long as the results.
//
// # Safety
// `results` are the results of a run; `out` is a `monopour_tensor` whose `size` is set.
int32_t monopour_results_get(const struct monopour_results *results,
                             size_t index,
                             struct monopour_tensor *out);

// Frees the results of a run.
//
// # Safety
// `results` is null, or results that were not freed.
void monopour_results_free(struct monopour_results *results);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MONOPOUR_H */
