/* Runs the stored artifact as a C and as a C++ program: values, errors, sizes of structs, a thousand runs. */
#include "monopour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                          \
      print_error();                                                                                                   \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

static void print_error(void) {
  monopour_error error;
  error.size = sizeof error;
  if (monopour_last_error(&error) == MONOPOUR_OK && error.status != MONOPOUR_OK) {
    fprintf(stderr, "error[%s] (%d): %s\n  help: %s\n", error.code, (int)error.status, error.message, error.help);
  }
}

/* The status, and whether the code is the last error's. */
static int fails(int32_t status, int32_t expected, const char *code) {
  monopour_error error;
  error.size = sizeof error;
  return status == expected && monopour_last_error(&error) == MONOPOUR_OK && error.status == expected &&
         strcmp(error.code, code) == 0 && strlen(error.message) > 0 && strlen(error.help) > 0;
}

static void check_signature(const monopour_program *program) {
  monopour_tensor_info info;
  info.size = sizeof info;
  EXPECT(monopour_program_inputs(program) == 2 && monopour_program_results(program) == 2);
  EXPECT(monopour_program_input(program, 0, &info) == MONOPOUR_OK);
  EXPECT(strcmp(info.name, "arg0") == 0 && strcmp(info.dtype, "f32") == 0 && info.rank == 2);
  EXPECT(info.shape[0] == UINT64_MAX && info.shape[1] == 4 && !info.is_scalar && !info.is_donated);
  EXPECT(monopour_program_input(program, 1, &info) == MONOPOUR_OK);
  EXPECT(strcmp(info.dtype, "index") == 0 && info.rank == 0 && info.is_scalar);
  EXPECT(monopour_program_result(program, 1, &info) == MONOPOUR_OK && strcmp(info.name, "result1") == 0);
  EXPECT(fails(monopour_program_input(program, 2, &info), MONOPOUR_ARGUMENT, ""));
  info.size = 4;
  EXPECT(fails(monopour_program_input(program, 0, &info), MONOPOUR_STRUCT_SIZE, ""));
}

/* A tensor of a later version: this one must not read or write behind what it knows, and step over the rest. */
typedef struct {
  monopour_tensor tensor;
  uint64_t later;
} later_tensor;

static void run_once(monopour_session *session, int64_t turns) {
  static const uint64_t shape[2] = {2, 4};
  float x[8] = {1, 2, 3, 4, 0, -1, 0.5f, 0};
  later_tensor inputs[2];
  monopour_results *results = NULL;
  later_tensor found;
  int64_t turn, number;
  int i;
  memset(inputs, 0, sizeof inputs);
  inputs[0].tensor.size = sizeof inputs[0];
  inputs[0].tensor.dtype = "f32";
  inputs[0].tensor.rank = 2;
  inputs[0].tensor.shape = shape;
  inputs[0].tensor.data = (const uint8_t *)x;
  inputs[0].tensor.bytes = sizeof x;
  inputs[1].tensor.size = sizeof inputs[1];
  inputs[1].tensor.dtype = "index";
  inputs[1].tensor.data = (const uint8_t *)&turns;
  inputs[1].tensor.bytes = sizeof turns;
  EXPECT(monopour_session_run(session, &inputs[0].tensor, 2, &results) == MONOPOUR_OK);
  EXPECT(monopour_results_len(results) == 2);
  found.tensor.size = sizeof found;
  found.later = 42;
  EXPECT(monopour_results_get(results, 0, &found.tensor) == MONOPOUR_OK && found.later == 42);
  EXPECT(found.tensor.size == sizeof found && found.tensor.bytes == sizeof x && found.tensor.shape[0] == 2);
  for (turn = 0; turn < turns; turn++) {
    for (i = 0; i < 8; i += 4) {
      float a = x[i], d = x[i + 3];
      x[i] = a + 3 * d;
      x[i + 3] = 2 * a + d;
    }
  }
  EXPECT(memcmp(found.tensor.data, x, sizeof x) == 0);
  EXPECT(monopour_results_get(results, 1, &found.tensor) == MONOPOUR_OK && found.tensor.rank == 0);
  memcpy(&number, found.tensor.data, sizeof number);
  EXPECT(number == 100 / turns);
  EXPECT(fails(monopour_results_get(results, 2, &found.tensor), MONOPOUR_ARGUMENT, ""));
  monopour_results_free(results);
}

static void fill_input(monopour_tensor inputs[2], const float *x, const int64_t *turns) {
  static const uint64_t shape[2] = {2, 4};
  memset(inputs, 0, 2 * sizeof *inputs);
  inputs[0].size = inputs[1].size = sizeof *inputs;
  inputs[0].dtype = "f32";
  inputs[0].rank = 2;
  inputs[0].shape = shape;
  inputs[0].data = (const uint8_t *)x;
  inputs[0].bytes = 8 * sizeof *x;
  inputs[1].dtype = "index";
  inputs[1].data = (const uint8_t *)turns;
  inputs[1].bytes = sizeof *turns;
}

static const float GIVEN[8] = {1, 2, 3, 4, 0, -1, 0.5f, 0};
/* After one turn. */
static const float EXPECTED[8] = {13, 2, 3, 6, 0, -1, 0.5f, 0};

/* Results in the caller's memory; what they do not need stays. */
static void run_between_slices(monopour_session *session) {
  const int64_t turns = 1;
  monopour_tensor inputs[2];
  monopour_place places[2];
  float y[9];
  int64_t number = 0;
  uint64_t sizes[3] = {0, 0, 77};
  y[8] = 5;
  fill_input(inputs, GIVEN, &turns);
  memset(places, 0, sizeof places);
  places[0].size = places[1].size = sizeof places[0];
  places[0].data = (uint8_t *)y;
  places[0].bytes = sizeof y;
  places[0].shape = sizes;
  places[0].rank = 3;
  places[1].data = (uint8_t *)&number;
  places[1].bytes = sizeof number;
  EXPECT(monopour_session_run_into(session, inputs, 2, places, 2) == MONOPOUR_OK);
  EXPECT(memcmp(y, EXPECTED, sizeof EXPECTED) == 0 && y[8] == 5 && number == 100);
  EXPECT(places[0].bytes == sizeof EXPECTED && places[0].rank == 2 && places[1].rank == 0);
  EXPECT(sizes[0] == 2 && sizes[1] == 4 && sizes[2] == 77);
  places[0].bytes = 31;
  places[0].rank = 2;
  EXPECT(fails(monopour_session_run_into(session, inputs, 2, places, 2), 16, "R0016"));
  places[0].rank = 1;
  EXPECT(fails(monopour_session_run_into(session, inputs, 2, places, 2), MONOPOUR_ARGUMENT, ""));
  places[0].shape = NULL;
  EXPECT(fails(monopour_session_run_into(session, inputs, 2, places, 1), 7, "R0007"));
  places[0].data = NULL;
  EXPECT(fails(monopour_session_run_into(session, inputs, 2, places, 2), MONOPOUR_ARGUMENT, ""));
}

static void expect_results(const monopour_run *run, uint64_t timeout_ms) {
  monopour_results *results = NULL;
  monopour_tensor found;
  EXPECT(monopour_run_wait(run, timeout_ms, &results) == MONOPOUR_OK && monopour_run_is_done(run));
  found.size = sizeof found;
  EXPECT(monopour_results_get(results, 0, &found) == MONOPOUR_OK && memcmp(found.data, EXPECTED, sizeof EXPECTED) == 0);
  monopour_results_free(results);
}

/* Several runs in flight, a run over frames, a timeout, a cancelled run. */
static void run_in_flight(monopour_session *session) {
  const int64_t turns = 1, many = 1000000000;
  monopour_tensor inputs[2];
  monopour_run *runs[3], *run = NULL;
  monopour_results *results = NULL;
  int i, frames = 0;
  fill_input(inputs, GIVEN, &turns);
  for (i = 0; i < 3; i++) {
    EXPECT(monopour_session_submit(session, inputs, 2, &runs[i]) == MONOPOUR_OK);
  }
  for (i = 2; i >= 0; i--) {
    expect_results(runs[i], MONOPOUR_FOREVER);
    EXPECT(fails(monopour_run_wait(runs[i], 0, &results), 16, "R0016") && results == NULL);
    monopour_run_free(runs[i]);
  }
  EXPECT(monopour_session_begin(session, inputs, 2, &run) == MONOPOUR_OK);
  EXPECT(monopour_run_advance(run, 0) == 1 && !monopour_run_is_done(run));
  while (monopour_run_advance(run, 1)) {
    frames++;
  }
  EXPECT(frames < 10);
  expect_results(run, 60000);
  monopour_run_free(run);
  fill_input(inputs, GIVEN, &many);
  EXPECT(monopour_session_submit(session, inputs, 2, &run) == MONOPOUR_OK);
  EXPECT(fails(monopour_run_wait(run, 5, &results), 24, "R0024") && !monopour_run_is_done(run));
  monopour_run_cancel(run);
  EXPECT(fails(monopour_run_wait(run, MONOPOUR_FOREVER, &results), 25, "R0025"));
  monopour_run_free(run);
  EXPECT(fails(monopour_session_submit(session, inputs, 1, &run), 7, "R0007") && run == NULL);
  EXPECT(monopour_run_advance(NULL, 1) == 0 && monopour_run_is_done(NULL) == 0);
  monopour_run_cancel(NULL);
  monopour_run_free(NULL);
}

/* The application's threads, which here are only the caller's, after the run. */
typedef struct {
  void (*work)(void *job);
  void *job;
  size_t calls;
} lent_threads;

static void share(void *context, size_t others, void (*work)(void *job), void *job) {
  lent_threads *threads = (lent_threads *)context;
  EXPECT(others == 1);
  if (threads->job != NULL) {
    threads->work(threads->job);
  }
  threads->work = work;
  threads->job = job;
  threads->calls++;
}

static void run_sessions_of_a_model(const monopour_device *device, const monopour_program *program, int runs) {
  monopour_model *model = NULL;
  monopour_session *sessions[2];
  monopour_options options;
  monopour_pool pool;
  lent_threads threads;
  int i;
  memset(&threads, 0, sizeof threads);
  memset(&pool, 0, sizeof pool);
  pool.size = sizeof pool;
  pool.threads = 2;
  pool.context = &threads;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  EXPECT(monopour_model_load(device, program, NULL, &model) == MONOPOUR_OK);
  options.pool = &pool;
  EXPECT(fails(monopour_session_new(model, &options, &sessions[0]), MONOPOUR_ARGUMENT, ""));
  pool.share = share;
  EXPECT(monopour_session_new(model, &options, &sessions[0]) == MONOPOUR_OK);
  /* The options of the first version. */
  options.size = offsetof(monopour_options, pool);
  options.threads = 1;
  EXPECT(monopour_session_new(model, &options, &sessions[1]) == MONOPOUR_OK);
  monopour_model_free(model);
  for (i = 0; i < runs; i++) {
    run_once(sessions[i % 2], 1 + i % 3);
  }
  for (i = 0; i < 2; i++) {
    run_between_slices(sessions[i]);
    run_in_flight(sessions[i]);
    monopour_session_free(sessions[i]);
  }
  if (threads.job != NULL) {
    threads.work(threads.job);
  }
  EXPECT(monopour_model_used_bytes(NULL) == 0);
  monopour_model_free(NULL);
}

static void check_errors(monopour_session *session, const char *path) {
  monopour_program *program = NULL;
  monopour_device *device = NULL;
  monopour_results *results = (monopour_results *)&program;
  monopour_tensor input;
  EXPECT(fails(monopour_program_open("/nonexistent.mpr", &program), 1007, "P0007") && program == NULL);
  EXPECT(fails(monopour_program_decode((const uint8_t *)"text", 4, &program), 1001, "P0001"));
  EXPECT(fails(monopour_program_decode(NULL, 4, &program), MONOPOUR_ARGUMENT, ""));
  EXPECT(fails(monopour_program_open("\xff.mpr", &program), MONOPOUR_ARGUMENT, ""));
  EXPECT(fails(monopour_program_open(path, NULL), MONOPOUR_ARGUMENT, ""));
  EXPECT(fails(monopour_device_open("no such device", &device), 2, "R0002") && device == NULL);
  EXPECT(fails(monopour_session_run(session, NULL, 0, &results), 7, "R0007") && results == NULL);
  EXPECT(fails(monopour_session_run(session, NULL, 1, &results), MONOPOUR_ARGUMENT, ""));
  EXPECT(fails(monopour_session_run(NULL, NULL, 0, &results), MONOPOUR_ARGUMENT, ""));
  memset(&input, 0, sizeof input);
  input.size = sizeof input;
  input.dtype = "f33";
  EXPECT(fails(monopour_session_run(session, &input, 1, &results), MONOPOUR_ARGUMENT, ""));
  input.dtype = "f32";
  EXPECT(fails(monopour_session_run(session, &input, 1, &results), 16, "R0016"));
  monopour_program_free(NULL);
  monopour_device_free(NULL);
  monopour_session_free(NULL);
  monopour_results_free(NULL);
}

int main(int argc, char **argv) {
  monopour_program *program = NULL;
  monopour_device *device = NULL;
  monopour_model *model = NULL;
  monopour_session *session = NULL;
  monopour_options options;
  uint64_t used = 0;
  int32_t host;
  int runs, i;
  EXPECT(argc == 3 && monopour_abi_version() == MONOPOUR_ABI_VERSION);
  runs = atoi(argv[2]);
  EXPECT(monopour_program_open(argv[1], &program) == MONOPOUR_OK);
  EXPECT(monopour_device_open("cpu", &device) == MONOPOUR_OK && strlen(monopour_device_name(device)) > 0);
  check_signature(program);
  EXPECT(fails(monopour_session_load(device, program, NULL, &session), 20, "R0020") && session == NULL);
  EXPECT(!monopour_program_is_trusted(program));
  EXPECT(monopour_program_trust(program) == MONOPOUR_OK && monopour_program_is_trusted(program));
  for (host = MONOPOUR_HOST_AUTO; host <= MONOPOUR_HOST_DATA; host++) {
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.threads = 1;
    options.host = host;
    EXPECT(monopour_model_load(device, program, &options, &model) == MONOPOUR_OK);
    EXPECT(monopour_session_new(model, &options, &session) == MONOPOUR_OK);
    for (i = 0; i < runs; i++) {
      run_once(session, 1 + i % 5);
      if (i == 0) {
        used = monopour_model_used_bytes(model);
      }
      /* Once warm, a run takes no more memory of the device. */
      EXPECT(used > 0 && monopour_model_used_bytes(model) == used);
    }
    check_errors(session, argv[1]);
    monopour_session_free(session);
    monopour_model_free(model);
  }
  run_sessions_of_a_model(device, program, runs < 100 ? runs : 100);
  options.host = 7;
  EXPECT(fails(monopour_session_load(device, program, &options, &session), MONOPOUR_ARGUMENT, ""));
  monopour_device_free(device);
  monopour_program_free(program);
  printf("%d runs in each form\n", runs);
  return 0;
}
