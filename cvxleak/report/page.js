"use strict";
// One adversary at a time: which one, the control says. Without this script all are shown.
const adversaries = [...document.querySelectorAll(".witness")];
const control = document.querySelector(".control");
const slider = control.querySelector("input");
const show = () => {
  const chosen = slider.valueAsNumber;
  adversaries.forEach((adversary, place) => { adversary.hidden = place !== chosen; });
  const title = adversaries[chosen].querySelector("h3").textContent;
  slider.setAttribute("aria-valuetext", title);
  control.querySelector("output").value = `${chosen + 1} of ${adversaries.length}`;
};
slider.addEventListener("input", show);
control.hidden = false;
show();
