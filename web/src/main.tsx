import { render } from "preact";
import { start } from "./state/start.ts";
import { App } from "./views/App.tsx";
import { showPlainly } from "./views/plainly.ts";
import "./style/base.css";
import "./style/controls.css";
import "./style/header.css";
import "./style/chart.css";
import "./style/graph.css";
import "./style/tables.css";
import "./style/screens.css";
import "./style/targets.css";

showPlainly();
start();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
