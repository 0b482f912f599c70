// What page.js draws with, out of Apache ECharts; "make echarts" bundles it.
import * as echarts from 'echarts/core';
import { LineChart, BarChart, BoxplotChart, HeatmapChart, CustomChart, ScatterChart, GraphChart } from 'echarts/charts';
import { GridComponent, TooltipComponent, LegendComponent, MarkLineComponent, VisualMapComponent, AriaComponent } from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';
echarts.use([LineChart, BarChart, BoxplotChart, HeatmapChart, CustomChart, ScatterChart, GraphChart, GridComponent, TooltipComponent, LegendComponent, MarkLineComponent, VisualMapComponent, AriaComponent, SVGRenderer]);
window.echarts = echarts;
