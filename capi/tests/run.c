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
  monopour_session *session = NULL;
  monopour_options options;
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
    EXPECT(monopour_session_load(device, program, &options, &session) == MONOPOUR_OK);
    for (i = 0; i < runs; i++) {
      run_once(session, 1 + i % 5);
    }
    check_errors(session, argv[1]);
    monopour_session_free(session);
  }
  options.host = 7;
  EXPECT(fails(monopour_session_load(device, program, &options, &session), MONOPOUR_ARGUMENT, ""));
  monopour_device_free(device);
  monopour_program_free(program);
  printf("%d runs in each form\n", runs);
  return 0;
}
