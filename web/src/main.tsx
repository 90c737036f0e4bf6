import { render } from "preact";
import { start } from "./state/start.ts";
import { App } from "./views/App.tsx";
import "./style/base.css";
import "./style/controls.css";
import "./style/header.css";
import "./style/chart.css";
import "./style/graph.css";
import "./style/tables.css";
import "./style/views.css";
import "./style/screens.css";

start();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
