// A stand-in for libnccl.so.2 in the tests. Ranks are threads or processes, of
// one machine, that find each other over sockets: the unique id names a port on
// which the process that made it introduces them, and then each has a connection
// with each. Data lies in memory of the fake libcuda, in whose streams the work is
// done, as kernels are: a collective that hangs leaves its stream busy until the
// communicator is aborted. NCCL_ALGO and NCCL_PROTO are read once in a process.
// Like the real one it takes one rank a GPU, that of the context of the thread
// that joins. What went on is written as the version that it claims to be writes it.
//
//   FAKENCCL_VERSION=22304
//   FAKENCCL_WRONG=all_reduce[:rank]  one bit of the operation's result is wrong
//   FAKENCCL_HANG=rank                it never arrives to join
//   FAKENCCL_STALL=rank[:bytes]       it never takes part in a collective (of so many bytes)
//   FAKENCCL_BLOCK=rank[:bytes]       it never comes back from the call of one
//   FAKENCCL_FAIL=AllReduce:3         that function returns 3
//   FAKENCCL_ASYNC=rank:6             the communicator reports 6 after its first collective
//   FAKENCCL_ABORTED=file             gets a line for each communicator that is aborted
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../nccl.h"
#include "../../../gpu/kernels/kernels.h"

enum { MOST = 16, CHUNK = 1 << 15, PIECES = 4 * MOST, CUDA = 1, SYSTEM = 2, INTERNAL = 3, INVALID = 4, USAGE = 5, REMOTE = 6 };

struct ncclComm {
  int magic, n, rank, device, aborted, error, sockets[MOST];
  unsigned short port;
  uint64_t cookie;
  pthread_t thread;
};

// piece is what goes to or comes from a peer. Pieces of one peer and direction
// move in order, all others side by side.
struct piece { int send, peer; char *at; size_t left; };

int ncclGetVersion(int *v);
int fake_fail(int code, const char *format, const char *what);
int fake_refused(const char *function);        // the code that a test wants it to return, or 0
const char *fake_knob(const char *name);       // NULL: not set
int fake_for(const char *knob, int rank);      // the knob names this rank first
int fake_gone(ncclComm_t c);
int fake_offer(uint64_t cookie);               // introduces ranks on a port, which it returns
void *fake_join(void *comm);                   // connects with all others
int fake_move(ncclComm_t c, struct piece *p, int n);
void fake_log(ncclComm_t c, const char *subsystem, const char *format, ...);
void fake_begin(void);
extern char fake_algorithm[32], fake_protocol[32];
extern int (*fake_call)(void *stream, void (*call)(void *), void *arg);
extern void *(*fake_memory)(void *stream, uint64_t at, uint64_t n);
extern int (*fake_on)(void *stream), (*fake_device)(void);
