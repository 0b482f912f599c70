// How ranks of the fake find each other, and what moves between them.
#include "fake.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

struct hello { uint64_t cookie; int rank, n, device; unsigned short port; };
struct table { unsigned short port[MOST]; int device[MOST]; };
struct offer { int fd; uint64_t cookie; };

static int listening(unsigned short *port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof a;
  if (fd < 0 || bind(fd, (void *)&a, len) || listen(fd, 64) || getsockname(fd, (void *)&a, &len)) return -1;
  *port = ntohs(a.sin_port);
  return fd;
}
static int reach(unsigned short port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
  if (fd >= 0 && !connect(fd, (void *)&a, sizeof a)) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

// ready waits until fd can be read; false: the communicator was aborted.
static int ready(ncclComm_t c, int fd) {
  for (struct pollfd p = {fd, POLLIN, 0}; poll(&p, 1, 20) <= 0;)
    if (fake_gone(c)) return 0;
  return 1;
}
static int whole(ncclComm_t c, int fd, void *to, size_t n) {
  for (size_t have = 0; have < n;) {
    if (c && !ready(c, fd)) return 0;
    ssize_t k = recv(fd, (char *)to + have, n - have, 0);
    if (k <= 0) return 0;
    have += k;
  }
  return 1;
}

static void *introduce(void *arg) {
  struct offer o = *(struct offer *)arg;
  free(arg);
  struct table t = {{0}, {0}};
  int fd[MOST], have = 0, n = 1;
  for (int i = 0; i < MOST; i++) fd[i] = -1;
  while (have < n) {
    int s = accept4(o.fd, 0, 0, SOCK_CLOEXEC);
    struct hello h;
    if (s < 0) break;
    if (!whole(NULL, s, &h, sizeof h) || h.cookie != o.cookie || h.rank < 0 || h.rank >= MOST || fd[h.rank] >= 0) { close(s); continue; }
    fd[h.rank] = s, t.port[h.rank] = h.port, t.device[h.rank] = h.device, n = h.n, have++;
  }
  for (int i = 0; i < MOST; i++)
    if (fd[i] >= 0) {
      if (send(fd[i], &t, sizeof t, MSG_NOSIGNAL) != sizeof t) perror("fakenccl");
      close(fd[i]);
    }
  close(o.fd);
  return NULL;
}
int fake_offer(uint64_t cookie) {
  unsigned short port;
  struct offer *o = malloc(sizeof *o);
  pthread_t t;
  *o = (struct offer){listening(&port), cookie};
  if (o->fd < 0 || pthread_create(&t, 0, introduce, o)) return -1;
  pthread_detach(t);
  return port;
}

static int meet(ncclComm_t c) {
  struct hello h = {c->cookie, c->rank, c->n, c->device, 0};
  struct table t;
  int in = listening(&h.port), root = reach(c->port), fine = in >= 0 && root >= 0;
  fine = fine && send(root, &h, sizeof h, MSG_NOSIGNAL) == sizeof h && whole(c, root, &t, sizeof t);
  for (int p = 0; fine && p < c->n; p++)
    if (p != c->rank && t.device[p] == c->device) {
      char twice[96];
      snprintf(twice, sizeof twice, "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d", c->rank, p, c->device);
      close(in), close(root);
      return fake_fail(USAGE, "%s", twice);
    }
  for (int p = 0; fine && p < c->rank; p++)
    fine = (c->sockets[p] = reach(t.port[p])) >= 0 && send(c->sockets[p], &h, sizeof h, MSG_NOSIGNAL) == sizeof h;
  for (int p = c->rank + 1; fine && p < c->n; p++) {
    struct hello from;
    int s = ready(c, in) ? accept4(in, 0, 0, SOCK_CLOEXEC) : -1;
    fine = s >= 0 && whole(c, s, &from, sizeof from) && from.cookie == c->cookie && from.rank > c->rank && from.rank < c->n;
    if (fine) c->sockets[from.rank] = s;
  }
  if (in >= 0) close(in);
  if (root >= 0) close(root);
  for (int p = 0; p < c->n; p++)
    if (c->sockets[p] >= 0) fcntl(c->sockets[p], F_SETFL, O_NONBLOCK);
  return fine ? 0 : REMOTE;
}
void *fake_join(void *x) {
  ncclComm_t c = x;
  int error = 0;
  if (fake_for("FAKENCCL_HANG", c->rank))
    while (!fake_gone(c)) usleep(1000);
  else
    error = meet(c);
  if (fake_gone(c)) return NULL;
  if (!error) {
    const char *set[] = {"NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS"}; // what it knows
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
      if (getenv(set[i])) fake_log(c, "ENV", "%s set by environment to %s", set[i], getenv(set[i]));
    fake_log(c, "NET", "Using network Socket");
    fake_log(c, "INIT", "Channel 00/0 : %d[%d] -> %d[%d] via P2P/direct pointer", c->rank, c->rank, (c->rank + 1) % c->n, (c->rank + 1) % c->n);
  }
  __atomic_store_n(&c->error, error, __ATOMIC_RELEASE);
  return NULL;
}

int fake_gone(ncclComm_t c) { return __atomic_load_n(&c->aborted, __ATOMIC_ACQUIRE); }

// first says that no piece before i has the same peer and direction.
static int first(struct piece *p, int i) {
  for (int j = 0; j < i; j++)
    if (p[j].left && p[j].send == p[i].send && p[j].peer == p[i].peer) return 0;
  return 1;
}
int fake_move(ncclComm_t c, struct piece *p, int n) {
  for (int i = 0; i < n; i++) // to itself: the n-th send meets the n-th receive
    for (int j = 0; p[i].send && p[i].peer == c->rank && j < n && p[i].left; j++)
      if (!p[j].send && p[j].peer == c->rank && p[j].left) {
        memmove(p[j].at, p[i].at, p[i].left);
        p[i].left = p[j].left = 0;
      }
  for (;;) {
    int open = 0, moved = 0;
    for (int i = 0; i < n; i++) {
      if (!p[i].left) continue;
      open++;
      if (p[i].peer == c->rank) return USAGE;
      if (!first(p, i)) continue;
      int s = c->sockets[p[i].peer];
      ssize_t k = p[i].send ? send(s, p[i].at, p[i].left, MSG_NOSIGNAL) : recv(s, p[i].at, p[i].left, 0);
      if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR)) return REMOTE;
      if (k > 0) p[i].at += k, p[i].left -= k, moved = 1;
    }
    if (!open) return 0;
    if (fake_gone(c)) return REMOTE;
    if (!moved) usleep(20);
  }
}
