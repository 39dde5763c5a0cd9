/* looplab: what keys do in its widgets. JupyterLab runs this with each widget; it takes hold once in a page. */
(body => {
    if (body.dataset.looplabKeys) return;
    body.dataset.looplabKeys = 'on';

    /* A key pressed in a widget stays there: on a button, JupyterLab would take "d d" as "delete the cell". Keys held
       with Ctrl, Alt or Cmd go on to JupyterLab, and so does Shift+Enter; Escape gives the focus back to the cell. */
    body.addEventListener('keydown', event => {
        const place = event.target.closest('.ll-view, summary');
        const isChord = event.ctrlKey || event.altKey || event.metaKey || event.shiftKey && event.key === 'Enter';
        if (!place || isChord) return;
        event.stopPropagation();
        if (event.key === 'Escape') place.closest('.jp-Cell')?.focus();
    });

    /* Arrow keys choose among radio buttons of one name, and Tab stops at them once; ipywidgets gives them none. */
    let rows = 0;
    body.addEventListener('keydown', event => {
        if (event.key !== 'Tab' && !event.key.startsWith('Arrow')) return;
        for (const row of body.querySelectorAll('.ll-view .widget-radio-box:has(input:not([name]))')) {
            rows += 1;
            row.querySelectorAll('input').forEach(option => { option.name = `looplab-${rows}`; });
        }
    }, true);
})(document.body);
