// Loading of data by a view.
import { useCallback, useEffect, useSignal } from "./ui.js";

// Runs load(abortSignal) at first and when deps change. Returns signals {data, problem, loading} and reload().
export function useLoad(load, deps) {
  const data = useSignal(null);
  const problem = useSignal(null);
  const loading = useSignal(true);
  const run = useCallback((signal) => {
    loading.value = true;
    return load(signal).then(
      (found) => {
        if (signal?.aborted) return;
        data.value = found;
        problem.value = null;
        loading.value = false;
      },
      (error) => {
        if (signal?.aborted) return;
        problem.value = error;
        loading.value = false;
      },
    );
  }, deps);
  useEffect(() => {
    const controller = new AbortController();
    data.value = null;
    problem.value = null;
    run(controller.signal);
    return () => controller.abort();
  }, [run]);
  return { data, problem, loading, reload: () => run() };
}

// Calls work every period_s while the page is visible.
export function useEvery(period_s, work) {
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) work(); }, period_s * 1000);
    return () => clearInterval(timer);
  }, []);
}
