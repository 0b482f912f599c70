// Stream capture and graphs of the fake. A node knows exactly the nodes that
// events and its stream's order put before it, and nothing else holds.
#include "fake.h"

struct node { struct task t; set before; };
struct CUgraph_st { int magic, n, dead, ended; CUstream origin; struct node *node; CUstream joined[64]; int njoined; };

static int has(const set *s, int i) { return s->bit[i / 64] >> (i % 64) & 1; }
static void put(set *s, int i) { s->bit[i / 64] |= 1ull << (i % 64); }
static void unite(set *s, const set *o) {
  for (int i = 0; i < NODES / 64; i++) s->bit[i] |= o->bit[i];
}

CUresult cuStreamBeginCapture_v2(CUstream s, int mode) {
  ENTER;
  int refuse = fake_env("FAKECUDA_GRAPH", 0);
  if (refuse) return refuse;
  if (!s || s->magic != 0x57ea || s->dev != fake_current->dev || mode != CU_CAPTURE_RELAXED) return CU_INVALID_VALUE;
  pthread_mutex_lock(&stream_lock);
  CUresult r = s->graph ? CU_CAPTURE_UNMATCHED : CU_OK;
  if (!r) {
    CUgraph g = calloc(1, sizeof *g);
    g->magic = 0x96a, g->origin = s, g->node = calloc(NODES, sizeof *g->node), g->joined[g->njoined++] = s;
    s->graph = g, memset(&s->after, 0, sizeof s->after);
  }
  pthread_mutex_unlock(&stream_lock);
  return r;
}

CUresult fake_keep(CUstream s, const struct task *t) {
  CUgraph g = s->graph;
  if (g->dead || g->n == NODES) return CU_CAPTURE_INVALIDATED;
  struct node *x = &g->node[g->n];
  x->t = *t, x->before = s->after;
  memset(&s->after, 0, sizeof s->after);
  put(&s->after, g->n++);
  return CU_OK;
}
CUresult fake_depend(CUstream s, CUevent e) {
  if (!e->graph) return CU_CAPTURE_ISOLATION; // not part of it
  if (e->graph->magic != 0x96a || e->graph->ended) return CU_CAPTURED_EVENT;
  if (s->graph && s->graph != e->graph) return CU_CAPTURE_MERGE;
  if (!s->graph) { // it takes part from now on
    if (e->graph->njoined == 64) return CU_CAPTURE_INVALIDATED;
    e->graph->joined[e->graph->njoined++] = s, s->graph = e->graph, memset(&s->after, 0, sizeof s->after);
  }
  unite(&s->after, &e->after);
  return CU_OK;
}
CUresult fake_invalid(CUstream s) {
  s->graph->dead = 1;
  pthread_mutex_unlock(&stream_lock);
  return CU_CAPTURE_UNSUPPORTED;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *out) {
  ENTER;
  pthread_mutex_lock(&stream_lock);
  CUgraph g = s->graph;
  CUresult r = !g || g->origin != s ? CU_CAPTURE_UNMATCHED : g->dead ? CU_CAPTURE_INVALIDATED : CU_OK;
  if (!r) { // every node must lie before the end of the origin
    set all = s->after;
    for (int i = g->n - 1; i >= 0; i--)
      if (has(&all, i)) unite(&all, &g->node[i].before);
    for (int i = 0; i < g->n; i++)
      if (!has(&all, i)) r = CU_CAPTURE_UNJOINED;
  }
  for (int i = 0; g && i < g->njoined; i++) g->joined[i]->graph = NULL;
  if (g) g->ended = 1;
  pthread_mutex_unlock(&stream_lock);
  *out = r ? NULL : g;
  return r;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g, unsigned long long flags) {
  ENTER;
  if (!g || g->magic != 0x96a || flags) return CU_INVALID_VALUE;
  CUgraph copy = malloc(sizeof *copy);
  *copy = *g;
  copy->node = malloc(NODES * sizeof *copy->node);
  memcpy(copy->node, g->node, g->n * sizeof *copy->node);
  *x = (CUgraphExec)copy, LIVE(1);
  return CU_OK;
}
static CUresult end(CUgraph g) {
  if (!g || g->magic != 0x96a) return CU_INVALID_HANDLE;
  g->magic = 0;
  free(g->node); // the rest stays: events may still name it
  return CU_OK;
}
CUresult cuGraphDestroy(CUgraph g) { ENTER; return end(g); }
CUresult cuGraphExecDestroy(CUgraphExec x) {
  ENTER;
  CUresult r = end((CUgraph)x);
  if (!r) LIVE(-1);
  return r;
}
CUresult cuGraphLaunch(CUgraphExec x, CUstream s) {
  ENTER;
  if (!x || ((CUgraph)x)->magic != 0x96a || !s || s->magic != 0x57ea || s->dev != fake_current->dev) return CU_INVALID_HANDLE;
  return fake_queue(s, (struct task){.what = GRAPH, .arg = x});
}

// play does the nodes in some order that only what is declared decides: of those
// that may go, the last that was queued, or any.
void fake_play(void *arg) {
  CUgraph g = arg;
  static unsigned seed;
  int lazy = fake_env("FAKECUDA_LAZY", 0);
  char *done = calloc(1, NODES);
  for (int left = g->n; left; left--) {
    int pick = -1, n = 0;
    for (int i = 0; i < g->n; i++) {
      int may = !done[i];
      for (int j = 0; j < i && may; j++) may = done[j] || !has(&g->node[i].before, j);
      if (may && (pick < 0 || (lazy && (seed % 2 || rand_r(&seed) % ++n == 0)))) pick = i;
    }
    fake_do(&g->node[pick].t);
    done[pick] = 1;
  }
  seed++;
  free(done);
}
