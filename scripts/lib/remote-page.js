// What a page runs so that scripts/lib/remote.mjs can work in it: it asks for a task, runs it, posts what came of it, and
// asks again. What goes wrong outside of a task is posted too.

const post = (path, value) => fetch(`/remote/${path}`, { method: "POST", body: JSON.stringify(value) });
const words = (thrown) => String(thrown?.stack ? `${thrown}\n${thrown.stack}` : thrown);

addEventListener("error", (event) => post("fault", words(event.error ?? event.message)));
addEventListener("unhandledrejection", (event) => post("fault", words(event.reason)));
for (const type of ["warn", "error"]) {
  const own = console[type];
  console[type] = (...parts) => {
    own.apply(console, parts);
    post("console", { type, text: parts.map(String).join(" ") });
  };
}

async function work() {
  for (;;) {
    const response = await fetch("/remote/task");
    // Nothing to do yet.
    if (response.status === 204) continue;
    const { id, code, argument } = await response.json();
    const outcome = { id };
    try {
      outcome.value = await new Function("argument", `return (async () => ${code})()`)(argument);
    } catch (error) {
      outcome.error = words(error);
    }
    await post("result", outcome);
  }
}

// The server is gone when the test is over.
work().catch(() => {});
