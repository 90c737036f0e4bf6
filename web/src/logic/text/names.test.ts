import { describe, expect, it } from "vitest";
import { fitName } from "./names.ts";

describe("names in little room", () => {
  it("drops arguments, then parameters, then scopes, then its beginning", () => {
    const name = "void ns::Map<int, std::pair<a, b>>::insert(int, char const*)";
    expect(fitName(name, 100)).toBe(name);
    expect(fitName(name, 50)).toBe("void ns::Map<int, std::pair<a, b>>::insert");
    expect(fitName(name, 24)).toBe("void ns::Map::insert");
    expect(fitName(name, 14)).toBe("Map::insert");
    expect(fitName(name, 6)).toBe("insert");
    expect(fitName(name, 4)).toBe("…ert");
    expect(fitName(name, 2)).toBe("");
  });

  it("keeps closures with their function, and no stray colons", () => {
    expect(fitName("rustc::mir::codegen_mir::<Builder<X>>", 22)).toBe("mir::codegen_mir");
    expect(fitName("alloc::Vec::<T>::new", 10)).toBe("Vec::new");
    expect(fitName("a::module::function::{closure#0}", 24)).toBe("function::{closure#0}");
    expect(fitName("a::module::function::{closure#0}", 14)).toBe("function");
    expect(fitName("a::module::function::{closure#0}", 5)).toBe("…tion");
    expect(fitName("core::ops::FnOnce::call_once{{vtable.shim}}", 18)).toBe("FnOnce::call_once");
  });

  it("leaves what only looks like brackets", () => {
    expect(fitName("<T as core::fmt::Display>::fmt", 26)).toBe("Display::fmt");
    expect(fitName("<alloc::vec::Vec<T> as Extend<T>>::extend", 20)).toBe("Extend::extend");
    expect(fitName("operator()", 8)).toBe("…rator()");
    expect(fitName("path/filepath.Walk", 14)).toBe("filepath.Walk");
    expect(fitName("a->b(c)", 5)).toBe("a->b");
  });

  it("keeps the end of names with dots: receivers, methods, no file's ending, no copy's number", () => {
    const go = "k8s.io/kubernetes/pkg/kubelet.(*Kubelet).syncPod";
    expect(fitName(go, 40)).toBe("pkg/kubelet.(*Kubelet).syncPod");
    expect(fitName(go, 28)).toBe("kubelet.(*Kubelet).syncPod");
    expect(fitName(go, 20)).toBe("(*Kubelet).syncPod");
    expect(fitName(go, 8)).toBe("syncPod");
    expect(fitName("java.util.concurrent.ThreadPoolExecutor.runWorker(Worker)", 30)).toBe(
      "ThreadPoolExecutor.runWorker",
    );
    expect(fitName("main.main.func1", 12)).toBe("main.func1");
    expect(fitName("main.func1", 7)).toBe("….func1");
    expect(fitName("__alloc_pages_slowpath.constprop.0", 24)).toBe("__alloc_pages_slowpath");
    expect(fitName("__alloc_pages_slowpath.constprop.0", 10)).toBe("…_slowpath");
    expect(fitName("libc.so.6", 8)).toBe("…bc.so.6");
    expect(fitName("perf-1234.map", 9)).toBe("…1234.map");
  });

  it("shortens names of ten thousand characters by what encloses others first, and keeps the end of the rest", () => {
    expect(fitName(`ns::outer<${"Pair<int, ".repeat(1_000)}int${">".repeat(1_000)}>::the_end(char const*)`, 20)).toBe(
      "ns::outer::the_end",
    );
    expect(fitName(`${"a".repeat(10_000)}end`, 6)).toBe("…aaend");
    expect(fitName(`${"(".repeat(10_000)}end`, 6)).toBe("…((end");
    expect(fitName(`<${"a as ".repeat(2_000)}`, 6)).toBe("…a as ");
  });
});
