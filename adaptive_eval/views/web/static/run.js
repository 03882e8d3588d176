import { follow } from "./live.js";
import { Plots } from "./plots.js";

const plots = new Plots(document.getElementById("figures"));
follow({ morePlots: () => plots.refresh() });
plots.refresh();
